package pg

import "strings"

// Columns are columns that the statements on a table name more than once.
type Columns []ColumnType

// ColumnType is a column's name, and the type in which its values are sent (see Arrays).
type ColumnType struct{ Name, Type string }

// Names are the columns as a list: "a, b".
func (c Columns) Names() string { return c.each(func(x ColumnType) string { return x.Name }) }

// Of are the columns of a table or alias as a list: "t.a, t.b".
func (c Columns) Of(table string) string {
	return c.each(func(x ColumnType) string { return table + "." + x.Name })
}

// Params are the arguments that are named as the columns are: "@a, @b".
func (c Columns) Params() string { return c.each(func(x ColumnType) string { return "@" + x.Name }) }

// Arrays are the arguments that hold many rows by column, for unnest: "@a::text[], @b::bigint[]".
func (c Columns) Arrays() string {
	return c.each(func(x ColumnType) string { return "@" + x.Name + "::" + x.Type + "[]" })
}

func (c Columns) each(text func(ColumnType) string) string {
	texts := make([]string, len(c))
	for i, x := range c {
		texts[i] = text(x)
	}
	return strings.Join(texts, ", ")
}
