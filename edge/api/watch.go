package api

import (
	"cmp"
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

// clocksApart is how far the clocks of two replicas may be apart. Records of one that leads after
// another are sent from so long before the other's last event.
const clocksApart = 10 * time.Second

// mostPolled is how many records a stream sends in each pollTime. It gets behind where there are
// more for long: to encode all of them would take more memory and time than to decide.
const mostPolled = 256

// Lost is what a stream says where its reader was too slow: that many records were
// dropped, of which some might have matched.
type Lost struct {
	Lost uint64 `json:"lost"`
	// Restarted is set if the stream goes on from one of another process. Records of that are not
	// known here: how many were dropped is not known. Leader is the process that streams from here
	// on, which began at the time Started.
	Restarted bool       `json:"restarted,omitempty"`
	Leader    string     `json:"leader,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
}

// watch streams records as server-sent events. "record" has a Record, "lost" a Lost,
// "end" a Problem that says why the stream ends. With the parameter every, "nodes" has a NodeTable
// of what changed and "counts" has Counts, at most as often.
func (h *handler) watch(w http.ResponseWriter, r *http.Request) {
	p := paramsOf(r, "pod", "node", "reason", "since", "every", "labels", "revision")
	q := p.query(h.Now(), h.veilOf(r))
	changes := h.changes(p)
	from, resumes, err := h.resumed(r)
	if err = cmp.Or(p.err, err); err != nil {
		refuse(w, err)
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
	s := &stream{w: w, control: http.NewResponseController(w), process: h.process, now: h.Now, changes: changes}
	switch {
	case !resumes:
		s.follow = h.follow(q)
	case from.process == h.process:
		s.follow, s.changes.revision = h.Recorder.Follow(q, from.record), from.revision
	default:
		q.Since, s.changes.revision = from.at.Add(-clocksApart), 0
		s.follow = h.follow(q)
		s.event("lost", s.follow.Next(), Lost{Restarted: true, Leader: h.Leader(), Started: &h.started})
	}
	h.stream(s, r)
}

// follow returns a follower of what is new, or of what there is since.
func (h *handler) follow(q records.Query) *records.Follower {
	if q.Since.IsZero() {
		return h.Recorder.Follow(q, h.Recorder.Next())
	}
	return h.Recorder.Follow(q, h.Recorder.Oldest())
}

func (h *handler) stream(s *stream, r *http.Request) {
	every := cmp.Or(s.changes.every, pollTime)
	most := int(mostPolled * every / pollTime)
	poll := time.NewTicker(every)
	defer poll.Stop()
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	end := time.NewTimer(streamTime)
	defer end.Stop()
	if !s.alive() {
		return
	}
	for {
		if !s.send(most) || !h.sendChanges(r.Context(), s) {
			return
		}
		if !h.Leads() {
			s.end(h.notLeading())
			return
		}
		select {
		case <-end.C:
			s.end(problem(http.StatusRequestTimeout, Ended, "a stream ends after %s; ask again", streamTime))
			return
		case <-poll.C:
		case <-alive.C:
			if !s.alive() {
				return
			}
		case <-h.Stopped:
			s.end(problem(http.StatusServiceUnavailable, NotLeading, "the daemon stops"))
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

	process string
	now     func() time.Time
	follow  *records.Follower
	changes changes
}

// send sends the next records.
func (s *stream) send(most int) bool {
	found, lost := s.follow.Read(most)
	if lost > 0 {
		s.event("lost", s.reached(found), Lost{Lost: lost})
	}
	for i := range found {
		if s.event("record", found[i].Number+1, &found[i].Record); s.failed {
			return false
		}
	}
	return lost == 0 && len(found) == 0 || s.flush()
}

// reached returns the number of the next record to be sent, found being those that were read.
func (s *stream) reached(found []records.Numbered) uint64 {
	if len(found) > 0 {
		return found[0].Number
	}
	return s.follow.Next()
}

// id returns the id of an event after which the record with that number is next.
func (s *stream) id(next uint64) string {
	return position{s.process, next, s.changes.revision, s.now()}.String()
}

func (s *stream) event(kind string, next uint64, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		s.failed = true
		return
	}
	s.write("id: %s\nevent: %s\ndata: %s\n\n", s.id(next), kind, body)
}

// end says why the stream ends.
func (s *stream) end(why *Problem) {
	s.event("end", s.follow.Next(), why)
	s.flush()
}

// alive writes a comment, and how far the stream has come.
func (s *stream) alive() bool {
	s.write("id: %s\n: alive\n\n", s.id(s.follow.Next()))
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
