package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// Times of the stream. The daemon says every 15 s that it is alive.
const (
	every      = "250ms" // how often nodes and counts come
	silentTime = 25 * time.Second
	aliveTime  = 15 * time.Second
	writeTime  = 30 * time.Second
	leastPause = time.Second
	// mostPause is between two tries to hear a scheduler, which may lead for seconds only. One that
	// refuses to answer is asked less often.
	mostPause    = 2 * time.Second
	refusedPause = 15 * time.Second
)

// mostWaiting is how many events may wait for a browser, and mostEvent bounds one. A browser that
// is slower is cut off, and comes again.
const (
	mostWaiting = 4096
	mostEvent   = 64 << 20
)

// Connection is how it stands with the daemon's stream. Browsers get it as the event "connection".
type Connection struct {
	State string `json:"state"` // live, reconnecting, stale or notLeading
	// Since is when the last event came, of a stream that is broken.
	Since   *time.Time   `json:"since,omitempty"`
	Problem *api.Problem `json:"problem,omitempty"`
}

// hub reads one stream of the daemon, while somebody watches, and sends it to all browsers.
type hub struct {
	data Data
	now  func() time.Time

	mu         sync.Mutex
	viewers    map[chan []byte]bool
	stop       context.CancelFunc // nil: the stream is not read
	closed     bool
	connection []byte // the event that tells how it stands
}

func newHub(data Data, now func() time.Time) *hub {
	return &hub{data: data, now: now, viewers: map[chan []byte]bool{}}
}

// join returns a channel with what comes from now on. It is closed if too much waits in it.
func (h *hub) join() chan []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := make(chan []byte, mostWaiting)
	if h.closed {
		close(events)
		return events
	}
	h.viewers[events] = true
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.connection = connection(Connection{State: "reconnecting"})
		go h.read(ctx)
	}
	events <- h.connection
	return events
}

// leave ends what join began.
func (h *hub) leave(events chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, events)
	if len(h.viewers) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// close ends all streams.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for events := range h.viewers {
		delete(h.viewers, events)
		close(events)
	}
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// send sends an event to all browsers, as the stream that the context is of.
func (h *hub) send(ctx context.Context, event []byte, about bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return // another stream is read since
	}
	if about {
		h.connection = event
	}
	for events := range h.viewers {
		select {
		case events <- event:
		default:
			delete(h.viewers, events)
			close(events)
		}
	}
}

func connection(c Connection) []byte {
	body, err := json.Marshal(c)
	if err != nil {
		panic(err) // such values always encode
	}
	return fmt.Appendf(nil, "event: connection\ndata: %s\n\n", body)
}

// read reads the daemon's streams, one after the other, until the context ends.
func (h *hub) read(ctx context.Context) {
	last, heard, pause := "", time.Time{}, leastPause
	for ctx.Err() == nil {
		before := heard
		err := h.readOne(ctx, &last, &heard)
		if ctx.Err() != nil {
			return
		}
		if heard != before {
			pause = leastPause
		}
		h.send(ctx, connection(h.broken(err, heard)), true)
		most := mostPause
		if p := new(api.Problem); errors.As(err, &p) && p.Code >= 400 && p.Code < 500 && p.Reason != api.Ended {
			most = refusedPause
			if p.Code == http.StatusBadRequest {
				last = "" // it may be why
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, most)
	}
}

// broken returns how it stands after a stream that ended with the error.
func (h *hub) broken(err error, heard time.Time) Connection {
	c := Connection{State: "stale"}
	if !heard.IsZero() {
		at := heard.UTC()
		c.Since = &at
	}
	var p *api.Problem
	switch {
	case !errors.As(err, &p):
		c.Problem = Problem(http.StatusBadGateway, api.Failed, err.Error())
	case p.Reason == api.Ended:
		return Connection{State: "reconnecting"}
	case p.Reason == api.NotLeading:
		c.State, c.Problem = "notLeading", p
	default:
		c.Problem = p
	}
	return c
}

// errSilent ends a stream in which nothing comes.
var errSilent = errors.New("the scheduler says nothing any more")

// readOne reads one stream. last is the id after which it goes on, heard when something came.
func (h *hub) readOne(ctx context.Context, last *string, heard *time.Time) error {
	of, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(silentTime, func() { cancel(errSilent) })
	defer late.Stop()
	header := http.Header{}
	if *last != "" {
		header.Set("Last-Event-Id", *last)
	}
	reply, err := h.data(of, "watch", map[string][]string{"every": {every}}, header)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return refusal(reply)
	}
	h.send(ctx, connection(Connection{State: "live"}), true)
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, mostEvent)
	var event bytes.Buffer
	kind, id := "", *last
	for lines.Scan() {
		late.Reset(silentTime)
		*heard = h.now()
		line := lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "id":
			id = string(value)
		case "event", "data":
			if string(name) == "event" {
				kind = string(value)
			}
			if kind == "end" && string(name) == "data" {
				var p api.Problem
				if err := json.Unmarshal(value, &p); err != nil {
					return fmt.Errorf("the end of the stream: %w", err)
				}
				return &p
			}
			event.Write(line)
			event.WriteByte('\n')
		case "":
			*last = id
			if kind != "" {
				event.WriteByte('\n')
				h.send(ctx, bytes.Clone(event.Bytes()), false)
			}
			event.Reset()
			kind = ""
		}
	}
	switch err := lines.Err(); {
	case context.Cause(of) == errSilent:
		return errSilent
	case err != nil:
		return fmt.Errorf("the stream broke off: %w", err)
	}
	return fmt.Errorf("the stream broke off: %w", io.ErrUnexpectedEOF)
}

// serve streams events to a browser.
func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		refuse(w, http.StatusBadRequest, api.BadRequest, "the page's stream takes no parameters: it has all records, and every "+every+" what changed of the nodes")
		return
	}
	events := h.join()
	defer h.leave(events)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	for {
		var text []byte
		select {
		case event, open := <-events:
			if !open {
				return
			}
			text = event
		case <-alive.C:
			text = []byte(": alive\n\n")
		case <-r.Context().Done():
			return
		}
		_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // no connection lacks it but in tests
		_, err := w.Write(text)
		if err != nil || len(events) == 0 && control.Flush() != nil {
			return
		}
	}
}
