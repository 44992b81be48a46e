"""Configuration of the documentation, built by ``nox -s docs`` without network access."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("OMP_NUM_THREADS", "2")
# inherited by the kernels that execute the notebooks
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH", "")])
)

import ordrec  # noqa: E402

project = "ordrec"
author = "The ordrec authors"
copyright = "the ordrec authors"
version = release = ordrec.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "gallery",
    "auto_gallery/*.ipynb",
    "auto_gallery/*.py",
    "**/README.md",
]
nitpicky = False
default_role = "code"
suppress_warnings = [
    "config.cache",  # the order of the gallery is a class, which cannot be cached
    "misc.highlighting_failure",
]

# The reference: one page for each public name, methods and parameters on it.
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Pages in Markdown; `{code-cell}` blocks and the notebooks are executed.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

# The gallery: every script is run, and a warning of Python in it is shown on its page.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": True,
    "thumbnail_size": (400, 280),
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = f"ordrec {version}"
html_static_path = ["_static"]
html_css_files = ["ordrec.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "ordrec"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "start": [], "changelog": []}
