def operator_edits(kind, obj, access):
    return [], []
