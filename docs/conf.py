"""Configuration of the documentation, built by ``nox -s docs`` without network access."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("OMP_NUM_THREADS", "2")

from equations import write_equations  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from sphinx_gallery.scrapers import figure_rst  # noqa: E402

import ordrec  # noqa: E402 (as installed; its compiled code is then that of the tests)

write_equations(HERE.parent)

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
nb_execution_timeout = 3600  # on a busy machine, too
nb_execution_raise_on_error = True
nb_merge_streams = True


def figures_without_pyplot(block: object, block_vars: dict, gallery_conf: dict) -> str:
    """Show the figures that ordrec draws: they are not among those that pyplot knows."""
    shown = block_vars.setdefault("shown_figures", [])
    paths = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and not hasattr(value, "number") and value not in shown:
            shown.append(value)
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1], dpi=150, facecolor="white")
    return figure_rst(paths, gallery_conf["src_dir"])


# The gallery: every script is run.
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
    "image_scrapers": ("matplotlib", figures_without_pyplot),
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
