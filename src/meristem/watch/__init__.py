"""To look on at a run from its files alone: in a terminal, or in a browser on this machine.

    told.py        what the lines of epochs.jsonl say of a member
    following.py   the files of a run, read as they grow; nothing is written, no lock is taken
    names.py       what the networks are called: price, fold, what they differ in
    state.py       the picture: plain data of a bounded size
    view.py        the picture now, with an estimate of the time left
    changes.py     what is different between two pictures, for those who have the first
    words.py, terminal.py       the picture as text;  server.py, connections.py, page.html       as a page

It works in another process than the run's, on a run that has ended, too, and cannot disturb one. `meristem watch` imports it.
"""
