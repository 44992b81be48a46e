"""What a fitted model answers beyond predictions: lists, reasons and similar items."""
