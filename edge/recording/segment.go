package recording

import (
	"bufio"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	baseversion "k8s.io/component-base/version"

	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Version of the format that is written, and the last that can be read. The first had
// no snapshots, those of the second held nothing that is under way. Up to the third, events
// have the numbers that they had on Kubernetes 1.36, and headers do not name Kubernetes. Up to
// the fourth, snapshots have no groups of the queue, no quotas and no statuses of groups.
const (
	Version           = 5
	lastVersion136    = 3
	lastWithoutGroups = 4
)

const magic = "BERTHREC"

// Header is what a segment says of itself and of the scheduler.
type Header struct {
	Version int    `json:"version"`
	Berth   string `json:"berth"` // the version of the program that wrote it
	// Kubernetes is the minor version whose rules that program follows, such as 1.37.
	Kubernetes string `json:"kubernetes,omitempty"`
	Path       string `json:"-"` // of the file, once it is read
	// Source is what the record is of: Scheduler, or Watch.
	Source string `json:"source"`
	// Start is the time from which the times of entries count.
	Start time.Time `json:"start"`
	// Segment is the segment's number, Run that of the first segment of the run
	// that it belongs to. Between two runs the scheduler started anew, or a part
	// is missing.
	Segment int `json:"segment"`
	Run     int `json:"run"`
	// Before is how many entries of the run are in segments before this one.
	Before uint64 `json:"before"`
	// Gap says why the run before this one ended early, "" where it did not.
	Gap string `json:"gap,omitempty"`
	// Whole: the run's first segment tells of all that the machine was told.
	// Else the run begins in the middle, with a checkpoint of the objects.
	// Of a Begin: nothing was told before it.
	Whole    bool `json:"whole"`
	Redacted bool `json:"redacted,omitempty"`

	Seed             uint64          `json:"seed,string"`
	Config           string          `json:"config,omitempty"` // a KubeSchedulerConfiguration, as YAML
	FeatureGates     map[string]bool `json:"featureGates,omitempty"`
	MaxUnschedulable time.Duration   `json:"maxUnschedulable,omitempty"`
}

// The sources of a record.
const (
	Scheduler = "berth-scheduler"
	Watch     = "watch"
)

// Origin says which program wrote the record, if that follows another Kubernetes than this
// one; else it is empty.
func (h *Header) Origin() string {
	if h.Kubernetes == baseversion.DefaultKubeBinaryVersion {
		return ""
	}
	return fmt.Sprintf("the record (version %d of the format) is of berth %s, which follows Kubernetes %s; this berth follows %s",
		h.Version, h.Berth, h.Kubernetes, baseversion.DefaultKubeBinaryVersion)
}

// Refusal returns why the record cannot be replayed, with its Origin and what to do.
func (h *Header) Refusal(why error) error {
	if o := h.Origin(); o != "" {
		return fmt.Errorf("%w: %s: use the berth that wrote it", why, o)
	}
	return why
}

// suffix of the names of segments.
const suffix = ".berthrecord"

func segmentName(n int) string { return fmt.Sprintf("%010d%s", n, suffix) }

// segments lists the numbers of the segments in the directory, in order.
func segments(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		digits, ours := strings.CutSuffix(e.Name(), suffix)
		if n, err := strconv.Atoi(digits); ours && err == nil && n > 0 && e.Name() == segmentName(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func createFile(path string) (io.WriteCloser, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user names the directory
}

// segmentWriter makes the bytes of a segment.
type segmentWriter struct {
	size    int64
	begun   int64 // the size after the checkpoint
	pending frameBuffer
	deflate *flate.Writer
}

// frameBuffer collects what goes into the next frame.
type frameBuffer struct{ bytes []byte }

func (b *frameBuffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

func newSegmentWriter() *segmentWriter {
	w := &segmentWriter{}
	w.deflate, _ = flate.NewWriter(&w.pending, flate.BestSpeed) // a level that is valid
	return w
}

// head returns the bytes with which the segment begins.
func (w *segmentWriter) head(h *Header) []byte {
	text, _ := json.Marshal(h) // of types that can be
	b := appendFrame([]byte(magic), text)
	w.size += int64(len(b))
	return b
}

// frame returns a frame with the entries.
func (w *segmentWriter) frame(entries []byte) []byte {
	_, _ = w.deflate.Write(entries) // to memory
	_ = w.deflate.Flush()
	b := appendFrame(nil, w.pending.bytes)
	w.pending.bytes = w.pending.bytes[:0]
	w.size += int64(len(b))
	return b
}

// grown is what came after the checkpoint.
func (w *segmentWriter) grown() int64 { return w.size - w.begun }

// segmentReader reads a segment.
type segmentReader struct {
	Header
	path    string
	file    io.Closer
	frames  frames
	part    []byte // what is left of the frame
	ended   error  // why there are no more frames
	entries *bufio.Reader
}

// openSegment opens a segment and reads its header.
func openSegment(path string) (*segmentReader, error) {
	f, err := untrusted.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := newSegmentReader(bufio.NewReaderSize(f, 1<<18), path)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	s.file = f
	return s, nil
}

func newSegmentReader(in io.Reader, path string) (*segmentReader, error) {
	s := &segmentReader{path: path, frames: frames{in: in, at: int64(len(magic))}}
	var start [len(magic)]byte
	if n, err := io.ReadFull(in, start[:]); err != nil && string(start[:n]) != magic[:n] || err == nil && string(start[:]) != magic {
		return nil, fmt.Errorf("%s: not a segment of a record", path)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errCut)
	}
	text, err := s.frames.next()
	if err == io.EOF {
		err = errCut
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(text, &s.Header); err != nil && s.Header.Version <= Version {
		return nil, fmt.Errorf("%s: the header: %w", path, err)
	}
	if s.Header.Version > Version {
		return nil, fmt.Errorf("%s: the record has version %d of the format, and this program (which reads up to version %d) is older: use the berth that wrote it (%s), or a newer one",
			path, s.Header.Version, Version, s.Header.Berth)
	}
	if s.Header.Version < 1 {
		return nil, fmt.Errorf("%s: the header has version %d of the format, which does not exist", path, s.Header.Version)
	}
	if s.Header.Path = path; s.Header.Version <= lastVersion136 {
		s.Header.Kubernetes = "1.36"
	}
	s.entries = bufio.NewReaderSize(flate.NewReader(s), 1<<16)
	return s, nil
}

// Read returns the compressed bytes of the frames.
func (s *segmentReader) Read(p []byte) (int, error) {
	if !s.fill() {
		return 0, s.ended
	}
	n := copy(p, s.part)
	s.part = s.part[n:]
	return n, nil
}

// ReadByte returns the next compressed byte of the frames. With it the decompressor needs
// no buffer of its own.
func (s *segmentReader) ReadByte() (byte, error) {
	if !s.fill() {
		return 0, s.ended
	}
	b := s.part[0]
	s.part = s.part[1:]
	return b, nil
}

func (s *segmentReader) fill() bool {
	for len(s.part) == 0 && s.ended == nil {
		s.part, s.ended = s.frames.next()
	}
	return len(s.part) > 0
}

// end says how the segment ended. It is called after the last entry. It returns nil
// if the file is whole, errCut if the file is cut off, and else the damage.
func (s *segmentReader) end(err error) error {
	switch {
	case s.ended != nil && s.ended != io.EOF:
		err = s.ended
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) && s.ended == io.EOF:
		return nil
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
