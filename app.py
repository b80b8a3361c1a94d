"""The Streamlit entry: page configuration and navigation, nothing else."""

import streamlit as st

from batchviz.ui.pages.compare import compare_page
from batchviz.ui.pages.what_is_real import what_is_real_page

st.set_page_config(page_title="batchviz", page_icon="🎞️", layout="wide", initial_sidebar_state="collapsed")

PAGES = [
    st.Page(compare_page, title="Compare", url_path="compare", default=True),
    st.Page(what_is_real_page, title="What is real here", url_path="what-is-real"),
]
st.navigation(PAGES, position="top").run()
