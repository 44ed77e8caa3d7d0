"""Arrays to figures: Plotly for curves on the screen, matplotlib for print."""
