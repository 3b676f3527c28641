"""Photos with labels, and more columns, in a CSV file with a header.

path,species,weight
a/1.jpg,cat,3.5

python examples/cookbook/labels_csv.py photos train.csv
"""

import sys

import headrace as hr

folder, table = sys.argv[1:] or ("photos", "train.csv")
photos = hr.files(folder, labels=table, label_column="species")  # the other columns are fields, too

for field in photos.fields:
    print(f"{field.text():12} {field.name}")
classes = photos.fields["label"].classes

heavy = photos.shuffle().where("weight > 2").decode().resize([64, 64]).batch(16)
for batch in heavy.loader(output="numpy"):
    for label, weight in zip(batch.label[:3], batch.weight[:3], strict=True):
        print(f"{classes[label]} of {weight:.1f} kg")
