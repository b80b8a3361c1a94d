"""The Streamlit entry: page configuration and navigation, nothing else."""

import streamlit as st
from batchviz.ui.pages.compare import compare_page

st.set_page_config(page_title="batchviz", page_icon="🎞️", layout="wide", initial_sidebar_state="collapsed")

st.navigation([st.Page(compare_page, title="Compare", url_path="compare", default=True)], position="hidden").run()
