package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-scheduler/berth/edge/bounds"
	"github.com/berth-scheduler/berth/edge/records"
)

// A stream says at least this often that it is alive. A reader who takes longer than
// writeTime for what he is sent is cut off. After streamTime a stream ends, so that whoever
// reads it shows again that he may.
const (
	aliveTime  = 15 * time.Second
	writeTime  = 30 * time.Second
	streamTime = 10 * time.Minute
)

// pollTime is how often a stream looks for what is new: to be told of each record would cost the
// scheduling loop more than the record does.
const pollTime = 100 * time.Millisecond

// mostAtOnce bounds the records that a stream holds while it sends them.
const mostAtOnce = 256

// Lost is what a stream says where its reader was too slow: that many records were
// dropped, of which some might have matched.
type Lost struct {
	Lost uint64 `json:"lost"`
}

// watch streams records as server-sent events. "record" has a Record, "lost" a Lost,
// "end" a Problem that says why the stream ends.
func (h *handler) watch(w http.ResponseWriter, r *http.Request) {
	p := paramsOf(r, "pod", "node", "reason", "since")
	q := p.query(h.Now(), h.veilOf(r))
	if p.err != nil {
		refuse(w, p.err)
		return
	}
	giveBack, ok := h.watches.Try(bounds.Client(r))
	if !ok {
		refuse(w, problem(http.StatusTooManyRequests, TooMany, "%d streams are open, or half as many of yours, which is as many as there may be", h.watches.Most()))
		return
	}
	defer giveBack()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, control: http.NewResponseController(w)}
	h.stream(s, r, q)
}

func (h *handler) stream(s *stream, r *http.Request, q records.Query) {
	first := h.Recorder.Next()
	if !q.Since.IsZero() {
		first = h.Recorder.Oldest()
	}
	follow := h.Recorder.Follow(q, first)
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	ends := time.Now().Add(streamTime)
	end := time.NewTimer(streamTime)
	defer end.Stop()
	if !s.alive() {
		return
	}
	for {
		if !s.send(follow, ends) {
			return
		}
		select {
		case <-end.C:
			s.event("end", problem(http.StatusRequestTimeout, Ended, "a stream ends after %s; ask again", streamTime))
			return
		case <-poll.C:
		case <-alive.C:
			if !h.Leads() {
				s.event("end", problem(http.StatusServiceUnavailable, NotLeading, "this daemon does not lead any more"))
				return
			}
			if !s.alive() {
				return
			}
		case <-h.Stopped:
			s.event("end", problem(http.StatusServiceUnavailable, NotLeading, "the daemon stops"))
			return
		case <-r.Context().Done():
			return
		}
	}
}

// stream writes server-sent events. Its methods report false when nobody reads.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	failed  bool
}

// send sends what there is, until the stream ends.
func (s *stream) send(f *records.Follower, ends time.Time) bool {
	for time.Now().Before(ends) {
		found, lost := f.Read(mostAtOnce)
		if lost > 0 {
			s.event("lost", Lost{lost})
		}
		for i := range found {
			if s.event("record", &found[i].Record); s.failed {
				return false
			}
		}
		if len(found) < mostAtOnce {
			return lost == 0 && len(found) == 0 || s.flush()
		}
	}
	return s.flush()
}

func (s *stream) event(kind string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		s.failed = true
		return
	}
	s.write("event: %s\ndata: %s\n\n", kind, body)
}

// alive writes a comment.
func (s *stream) alive() bool {
	s.write(": alive\n\n")
	return s.flush()
}

func (s *stream) write(format string, args ...any) {
	if s.failed {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // HTTP/2 streams may have none
	_, err := fmt.Fprintf(s.w, format, args...)
	s.failed = err != nil
}

func (s *stream) flush() bool {
	if !s.failed && s.control.Flush() != nil {
		s.failed = true
	}
	return !s.failed
}
