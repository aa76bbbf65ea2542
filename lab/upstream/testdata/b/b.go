// Package b has a constant that another package names.
package b

const Name = "of b"
