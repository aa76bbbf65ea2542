// Package written is a generated cluster as files hold it, which changes can be
// applied to as people apply them. Tests read it anew after each change.
package written
