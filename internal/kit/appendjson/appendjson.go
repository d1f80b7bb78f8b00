// Package appendjson writes JSON by hand for the few answers that have thousands of values,
// where encoding/json spends most of the time on finding out what they are. Each function
// writes what encoding/json writes, byte for byte.
package appendjson

import (
	"encoding/json"
	"strconv"
)

// String appends a string.
func String[T ~string](b []byte, s T) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			return slowly(b, string(s))
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain are the characters that stand for themselves. Others are left to encoding/json.
var plain = func() (set [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		set[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return set
}()

// Int appends a whole number.
func Int[T ~int | ~int64](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

// Raw appends a value that is JSON already; null for nil.
func Raw(b []byte, value json.RawMessage) []byte {
	if value == nil {
		return append(b, "null"...)
	}
	for _, c := range value {
		// encoding/json leaves blanks between values out and escapes some characters.
		if c != '"' && c != '\\' && !plain[c] || c == ' ' {
			return slowly(b, value)
		}
	}
	return append(b, value...)
}

// Or appends the value that v points to by write, or null where there is none.
func Or[T any](b []byte, v *T, write func([]byte, T) []byte) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return write(b, *v)
}

func slowly(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("appendjson: " + err.Error()) // Raw was given something else than JSON
	}
	return append(b, text...)
}
