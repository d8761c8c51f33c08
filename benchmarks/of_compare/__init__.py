"""The parts of `compare`.

checkouts    a revision in a worktree and an environment of its own, both removed at the end
rounds       both revisions by turns, in new pairs of processes again and again
table        the verdicts, in Markdown
"""
