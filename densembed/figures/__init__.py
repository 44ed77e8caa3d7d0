"""Figures: Plotly for curves and HTML exports, matplotlib for print and animations."""
