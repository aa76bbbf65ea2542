package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Reader reads the entries of a log, from the oldest segment on.
type Reader struct {
	// Notes are what was found on the way and is no error: an end that was cut off.
	Notes []string

	dir     string
	numbers []int // of the segments that were not read yet
	segment *segmentReader
	decoder *decoder
	run     int    // that is being read; 0: none
	before  uint64 // entries of the run so far; what the next segment has to say
	whole   bool   // the segment before ended as it was meant to
	first   Header
}

// Open opens the log in a directory.
func Open(dir string) (*Reader, error) {
	stat, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file or directory", dir)
	case err != nil:
		return nil, err
	case !stat.IsDir():
		return nil, fmt.Errorf("%s: not a directory: a record is a directory of *%s files", dir, suffix)
	}
	numbers, err := segments(dir)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%s: no record: there is no *%s file in it", dir, suffix)
	}
	r := &Reader{dir: dir, numbers: numbers}
	for {
		s, err := openSegment(r.path(r.numbers[0]))
		if errors.Is(err, errCut) && len(r.numbers) > 1 { // a crash at the begin of a segment
			r.note(r.numbers[0])
			r.numbers = r.numbers[1:]
			continue
		}
		if err != nil {
			return nil, err
		}
		r.first = s.Header
		return r, s.file.Close()
	}
}

// Header is that of the oldest segment.
func (r *Reader) Header() Header { return r.first }

// Close closes what is open.
func (r *Reader) Close() error {
	if r.segment == nil {
		return nil
	}
	return r.segment.file.Close()
}

func (r *Reader) path(n int) string { return filepath.Join(r.dir, segmentName(n)) }

// Next is the next entry, io.EOF after the last. Damage is an error that names the
// file and the offset.
func (r *Reader) Next() (*Entry, error) {
	for {
		if r.segment == nil {
			begin, err := r.open()
			if err != nil || begin != nil {
				return begin, err
			}
			continue
		}
		e, err := r.decoder.entry()
		if err == nil {
			if e.Snapshot == nil {
				r.before++
			}
			return e, nil
		}
		if err := r.ended(err); err != nil {
			return nil, err
		}
	}
}

// open goes on to the next segment. It returns an entry where a run begins there.
func (r *Reader) open() (*Entry, error) {
	if len(r.numbers) == 0 {
		return nil, io.EOF
	}
	n := r.numbers[0]
	r.numbers = r.numbers[1:]
	s, err := openSegment(r.path(n))
	if errors.Is(err, errCut) { // a crash at the begin of a segment
		r.note(n)
		r.run = 0
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.segment, r.decoder = s, newDecoder(s.entries, &s.Header)
	begin := &Begin{Header: s.Header}
	if begin.Whole = s.Whole && s.Run == s.Segment; !begin.Whole {
		if begin.Objects, err = r.decoder.checkpoint(); err != nil {
			return nil, r.ended(err)
		}
	}
	if s.Run != r.run {
		r.run, r.before = s.Run, s.Before
		return &Entry{Begin: begin}, nil
	}
	if s.Before != r.before || !r.whole {
		return nil, fmt.Errorf("%s: the end of the segment before it is missing: it should hold %d entries more", s.path, int64(s.Before)-int64(r.before))
	}
	return nil, nil
}

// ended closes the segment and judges how it ended.
func (r *Reader) ended(err error) error {
	s := r.segment
	r.segment = nil
	_ = s.file.Close()
	err = s.end(err)
	r.whole = err == nil
	if errors.Is(err, errCut) {
		r.note(s.Segment)
		return nil
	}
	return err
}

func (r *Reader) note(n int) {
	r.Notes = append(r.Notes, fmt.Sprintf("%s: the end is cut off, as after a crash; what was whole was read", r.path(n)))
}
