package manifest

import (
	"bytes"
	"slices"
)

// outline is where the parts of an object stand that tell what it is. The
// rest of it is not looked at: who decodes it later sees whether it is sound.
type outline struct {
	apiVersion, kind []byte
	items            [][]byte
	list             bool // items is an array, or null: an empty one
	long             bool // there are more items than are read
}

// outline finds the outline of the JSON object that the data is; nil when it is
// anything else. It reads a large list many times faster than a decoder.
func (s *skimmer) outline() *outline {
	o := &outline{}
	known := false
	ok := s.next('{') && s.members('}', func() bool {
		key, ok := s.value()
		if !ok || key[0] != '"' || !s.next(':') {
			return false
		}
		if string(key) == `"items"` && s.next('[') {
			o.list, o.items = true, nil
			return s.members(']', func() bool {
				if o.long = len(o.items) >= mostObjects; o.long {
					return false
				}
				item, ok := s.item()
				o.items = append(o.items, item)
				return ok
			})
		}
		value, ok := s.value()
		switch string(key) {
		case `"apiVersion"`:
			o.apiVersion = value
		case `"kind"`:
			o.kind = value
		case `"items"`:
			o.list, o.items = string(value) == "null", nil
		}
		known = s.early && o.apiVersion != nil && o.kind != nil && !bytes.HasSuffix(o.kind, []byte(`List"`))
		return ok && !known
	})
	if known || o.long {
		return o
	}
	if s.space(); !ok || s.at != len(s.data) {
		return nil
	}
	return o
}

// skimmer reads JSON without a look at most of it. In haste it takes for JSON what may
// be none, so all objects must be decoded then to know that it found them.
type skimmer struct {
	data     []byte
	at       int
	indented bool // trust the indentation of lists
	early    bool // look no further than to apiVersion and kind
}

// item takes an element of a list. One that begins a line ends, in an indented text, at
// the next line that is indented like this and begins with the closing brace: there is
// no line break within a string.
func (s *skimmer) item() ([]byte, bool) {
	s.space()
	line := s.at
	for line > 0 && s.data[line-1] == ' ' {
		line--
	}
	if !s.indented || line == 0 || s.data[line-1] != '\n' || s.at == len(s.data) || s.data[s.at] != '{' {
		return s.value()
	}
	end := append(slices.Clone(s.data[line-1:s.at]), '}')
	length := bytes.Index(s.data[s.at:], end)
	if length < 0 {
		s.indented = false
		return s.value()
	}
	start := s.at
	s.at += length + len(end)
	return s.data[start:s.at], true
}

func (s *skimmer) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next takes the byte if it comes next, after white space.
func (s *skimmer) next(c byte) bool {
	s.space()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// members reads what stands between commas, up to the closing byte.
func (s *skimmer) members(end byte, member func() bool) bool {
	if s.next(end) {
		return true
	}
	for member() {
		if s.next(end) {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
	return false
}

// value takes one value of any kind and returns its text.
func (s *skimmer) value() ([]byte, bool) {
	s.space()
	data, start, depth := s.data, s.at, 0
	for i := s.at; i < len(data); i++ {
		switch tokens[data[i]] {
		case quote:
			if i = textEnd(data, i); i < 0 {
				return nil, false
			}
			if depth == 0 {
				s.at = i + 1
				return data[start:s.at], true
			}
		case opening:
			depth++
		case closing:
			if depth == 0 {
				s.at = i
				return data[start:i], i > start
			}
			if depth--; depth == 0 {
				s.at = i + 1
				return data[start:s.at], true
			}
		case between:
			if depth == 0 {
				s.at = i
				return data[start:i], i > start
			}
		}
	}
	return nil, false
}

// token is what a byte means outside of strings.
type token uint8

const (
	quote token = 1 + iota
	opening
	closing
	between
)

var tokens = [256]token{'"': quote, '{': opening, '[': opening, '}': closing, ']': closing,
	',': between, ':': between, ' ': between, '\t': between, '\n': between, '\r': between}

// textEnd is where the string ends that begins there, -1 if it does not.
func textEnd(data []byte, at int) int {
	for i := at + 1; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}
