"""The files in an uploader, for its callback."""

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile


def brought_files(key: str) -> list[UploadedFile]:
    """The files in the uploader with a key.

    Streamlit's state also has those that the visitor removed before the server read them. They have
    no content.
    """
    files = st.session_state[key]
    if not isinstance(files, Sequence):
        files = [files]
    return [file for file in files if isinstance(file, UploadedFile)]
