"""The saves of one run's checkpoint: where they are, how they are found, and which were answered.

save_slot       where the saves of a checkpoint are
answer_mark     the mark that an interrupt was answered, once
long_history    a long history, in pieces
loading         finding a checkpoint, and its image
ending          the writes for the saves of a run that ends
"""
