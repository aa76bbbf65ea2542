// Package a has constants of all kinds.
package a

import (
	"example.com/m/b"
	"example.com/other"
)

type kind string

const (
	prefix    = "prefix_"
	Plain     = "plain"
	Sum       = prefix + "name"
	Number    = 60 * 10
	Other     = b.Name
	Converted = kind(Plain)
	Unknown   = other.Missing
)

var (
	Pointed = ptr.To[int32](3)
	List    = []item{{Name: b.Name, Weight: 1}}
)
