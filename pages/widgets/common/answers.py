"""Answers of Streamlit's server that a rerun must not drop."""

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

ANSWERS = ("file_urls_response", "backend_operation_response")
"""Kinds of messages for which the browser waits: where it is to send a file that was picked, and
the file that a download button makes."""


def keep_answers() -> None:
    """Keep answers that have not been sent yet when the script of a page runs again.

    Streamlit 1.67 empties its queue then, but for some kinds of messages. A file that was picked,
    or a download that was asked for, while a view reported was lost without a word.
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
