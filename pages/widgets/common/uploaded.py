"""The files in an uploader, for its callback."""

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile


def uploaded_files(key: str) -> list[UploadedFile]:
    """The files in the uploader with a key.

    Streamlit's state also contains files that the visitor removed before the server read them,
    which have no content. They are left out.
    """
    files = st.session_state[key]
    if not isinstance(files, Sequence):
        files = [files]
    return [file for file in files if isinstance(file, UploadedFile)]
