"""The Streamlit entry: the server that hands the page out; its configuration and navigation.

Streamlit imports this file once as a server, and runs it as a script for every visitor.
"""

import streamlit as st

if __name__ == "__main__":
    from batchviz.ui.pages.compare import compare_page
    from batchviz.ui.pages.debug import debug_page
    from batchviz.ui.pages.learn import learn_page
    from batchviz.ui.pages.what_is_real import what_is_real_page
    from batchviz.ui.tidy import tidied_after

    tidied_after()
    st.set_page_config(page_title="batchviz", page_icon="🎞️", layout="wide", initial_sidebar_state="collapsed")
    compare = st.Page(compare_page, title="Compare", url_path="compare", default=True)
    learn = st.Page(learn_page, title="Learn", url_path="learn")
    what_is_real = st.Page(what_is_real_page, title="What is real here", url_path="what-is-real")
    debug = st.Page(debug_page, title="Debug", url_path="debug")
    st.navigation([compare, learn, debug, what_is_real], position="top").run()
else:
    from batchviz.ui.first_page import ROUTES
    from batchviz.ui.health import health_route, prepare
    from batchviz.ui.warm_up import warm_up

    prepare()
    warm_up()
    app = st.App(__file__, routes=(*ROUTES, health_route()))
