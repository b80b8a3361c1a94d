"""The pages. The only place, with app.py, that imports streamlit; it never imports torch."""
