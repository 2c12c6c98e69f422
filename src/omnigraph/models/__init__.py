"""Python classes as types of a schema: pydantic models, dataclasses and msgspec structs.

marks           what annotations cannot say: keys, widths of numbers, ranges, names
annotations     an annotation → the type of a property and its marks
described       a class → a described node type, edge type or interface
schema_text     classes → the text of a schema
objects         objects → records, rows → objects
base            `Node` and `Edge`, the bases of pydantic models; only this module imports pydantic
"""
