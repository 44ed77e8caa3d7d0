"""Answers of Streamlit's server that a rerun must not drop."""

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

ANSWERS = ("file_urls_response", "backend_operation_response")
"""Kinds of messages for which the browser waits: the address for an upload, and the file of a
download button."""


def keep_answers() -> None:
    """Keep answers that have not been sent yet when the script of a page runs again.

    At the start of a run, Streamlit 1.67 drops most kinds of messages from its queue. An upload or
    a download that began at that moment was lost, without an error message.
    """
    clear = ForwardMsgQueue.clear
    if getattr(clear, "keeps_answers", False):
        return

    def clear_all_else(
        self: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, *args, **options
    ) -> None:
        answers = [message for message in self._queue if message.WhichOneof("type") in ANSWERS]
        clear(self, retain_lifecycle_msgs, *args, **options)
        if retain_lifecycle_msgs:
            kept = {id(message) for message in self._queue}
            self._queue.extend(message for message in answers if id(message) not in kept)

    clear_all_else.keeps_answers = True  # type: ignore[attr-defined]
    ForwardMsgQueue.clear = clear_all_else  # type: ignore[method-assign]
