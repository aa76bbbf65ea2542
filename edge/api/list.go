package api

import (
	"bufio"
	"bytes"
	"iter"
	"net/http"
)

// list is an answer with a list whose elements are made and encoded as they are sent: a
// reader who is slow holds one of them, and not all.
type list struct {
	frame    any // the answer with an empty list, the only one in it
	elements iter.Seq[any]
	end      func() // after the last element
}

// Bytes of an answer that wait to be sent.
const sendBytes = 32 << 10

// write writes what encoding the whole answer would.
func (l *list) write(w http.ResponseWriter) error {
	var b bytes.Buffer
	if err := encoder(&b, "").Encode(l.frame); err != nil {
		return err
	}
	before, after, _ := bytes.Cut(bytes.Clone(b.Bytes()), []byte("[]"))
	out := bufio.NewWriterSize(w, sendBytes)
	_, _ = out.Write(before) // the error stays until Flush
	mark, close := "[\n    ", "[]"
	for element := range l.elements {
		b.Reset()
		if err := encoder(&b, "    ").Encode(element); err != nil {
			return err
		}
		_, _ = out.WriteString(mark)
		if _, err := out.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))); err != nil {
			return err
		}
		mark, close = ",\n    ", "\n  ]"
	}
	_, _ = out.WriteString(close)
	_, _ = out.Write(after)
	return out.Flush()
}
