package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is a length, the checksum of what it holds, a checksum of these two, and
// what it holds.
const frameHeader = 12

// maxFrame bounds what a reader takes into memory for one frame.
const maxFrame = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// appendFrame appends a frame that holds b.
func appendFrame(to, b []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(b)))
	to = binary.LittleEndian.AppendUint32(to, checksum(b))
	to = binary.LittleEndian.AppendUint32(to, checksum(to[at:at+8]))
	return append(to, b...)
}

// errCut says that a segment ends in the middle of a frame, as it does after a
// crash.
var errCut = errors.New("the segment ends in the middle of a frame")

// frames reads the frames of a segment.
type frames struct {
	in io.Reader
	at int64 // in the file
}

// next is what the next frame holds. io.EOF is the end of the segment, errCut an
// end within a frame; any other error is damage, or a file that cannot be read.
func (f *frames) next() ([]byte, error) {
	var header [frameHeader]byte
	n, err := io.ReadFull(f.in, header[:])
	switch {
	case err == io.EOF:
		return nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errCut
	case err != nil:
		return nil, err
	}
	length, sum := binary.LittleEndian.Uint32(header[:]), binary.LittleEndian.Uint32(header[4:])
	if binary.LittleEndian.Uint32(header[8:]) != checksum(header[:8]) {
		if header == [frameHeader]byte{} && f.zeros() {
			return nil, errCut // room that the file system gave, and nobody wrote to
		}
		return nil, fmt.Errorf("offset %d: the header of a frame is damaged (checksum)", f.at)
	}
	if length > maxFrame {
		return nil, fmt.Errorf("offset %d: a frame of %d bytes is too long", f.at, length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(f.in, body); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			return nil, errCut
		}
		return nil, err
	}
	if checksum(body) != sum {
		return nil, fmt.Errorf("offset %d: a frame of %d bytes is damaged (checksum)", f.at, length)
	}
	f.at += int64(n) + int64(length)
	return body, nil
}

// zeros tells whether nothing but zeros is left.
func (f *frames) zeros() bool {
	buffer := make([]byte, 1<<16)
	for {
		n, err := f.in.Read(buffer)
		if len(bytes.Trim(buffer[:n], "\x00")) > 0 {
			return false
		}
		if err != nil {
			return err == io.EOF
		}
	}
}
