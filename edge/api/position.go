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
	process  string    // that streams
	record   uint64    // the number of the next record
	revision uint64    // of the nodes that were sent; 0: none
	at       time.Time // to the millisecond
}

func (p position) String() string {
	return p.process + "-" + strconv.FormatUint(p.record, 10) + "-" + strconv.FormatUint(p.revision, 10) + "-" + strconv.FormatInt(p.at.UnixMilli(), 10)
}

// processOf returns what tells the events of a process that started at that time from those of
// others.
func processOf(started time.Time) string { return strconv.FormatInt(started.UnixNano(), 36) }

// lastEventID is the header with the position.
const lastEventID = "Last-Event-ID"

var positions = regexp.MustCompile(`^([0-9a-z]{1,13})-([0-9]{1,19})-([0-9]{1,19})-([0-9]{1,15})$`)

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
	var n [3]uint64
	for i := range n {
		n[i], _ = strconv.ParseUint(parts[2+i], 10, 64) // 19 digits always fit
	}
	if parts[1] == h.process && n[0] > h.Recorder.Next() {
		return p, false, bad
	}
	return position{parts[1], n[0], n[1], time.UnixMilli(int64(n[2]))}, true, nil // #nosec G115 -- 15 digits
}
