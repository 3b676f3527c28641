"""Photos, and a table with a column of their names.

photos/cats/0001.jpg, photos/cats/0002.jpg, ...

id,note
0002,asleep
0002,on a chair

python examples/cookbook/join_table.py photos notes.csv
"""

import sys

import headrace as hr

folder, table = sys.argv[1:] or ("photos", "notes.csv")
photos, notes = hr.files(folder, labels="folder"), hr.csv(table)

# A record for each note: "stem" is a file's name without its ending. Photos without a note are left out.
pairs = hr.join(photos, notes, left_on="stem", right_on="id")
print(f"{photos.record_count} photos and {notes.record_count} notes give {pairs.record_count} pairs")

pipe = pairs.shuffle(seed=1).decode().resize([64, 64]).batch(16)
for batch in pipe.loader(output="numpy"):
    print(f"{len(batch.image)} pictures, the first one {batch.note[0]}")
