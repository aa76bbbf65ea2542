package api

import (
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// position is how far a stream has come. It is the id of each of its events: whoever sends it back
// as Last-Event-ID goes on there.
type position struct {
	process string    // that streams
	record  uint64    // the number of the next record
	at      time.Time // to the millisecond
}

func (p position) String() string {
	return p.process + "-" + strconv.FormatUint(p.record, 10) + "-" + strconv.FormatInt(p.at.UnixMilli(), 10)
}

// processOf returns what tells the events of a process that started at that time from those of
// others.
func processOf(started time.Time) string { return strconv.FormatInt(started.UnixNano(), 36) }

// lastEventID is the header with the position.
const lastEventID = "Last-Event-ID"

var positions = regexp.MustCompile(`^([0-9a-z]{1,13})-([0-9]{1,20})-([0-9]{1,15})$`)

// resumed returns the position that the request goes on from; false if it begins anew.
func (h *handler) resumed(r *http.Request) (p position, ok bool, err error) {
	id := r.Header.Get(lastEventID)
	if id == "" {
		return p, false, nil
	}
	bad := problem(http.StatusBadRequest, BadRequest, "header %s=%s: is not the id of an event", lastEventID, id)
	parts := positions.FindStringSubmatch(id)
	if parts == nil {
		return p, false, bad
	}
	record, err := strconv.ParseUint(parts[2], 10, 64)
	milliseconds, errTime := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || errTime != nil || parts[1] == h.process && record > h.Recorder.Next() {
		return p, false, bad
	}
	return position{parts[1], record, time.UnixMilli(milliseconds)}, true, nil
}
