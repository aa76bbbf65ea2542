package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// upstream is a daemon whose streams the test writes.
type upstream struct {
	opened []string // the Last-Event-ID of each
	to     *io.PipeWriter
	err    error
}

func (u *upstream) data(ctx context.Context, _ string, _ map[string][]string, header http.Header) (*http.Response, error) {
	u.opened = append(u.opened, header.Get("Last-Event-ID"))
	if u.err != nil {
		return nil, u.err
	}
	from, to := io.Pipe()
	u.to = to
	context.AfterFunc(ctx, func() { _ = to.CloseWithError(ctx.Err()) })
	return &http.Response{StatusCode: http.StatusOK, Body: from}, nil
}

// viewer returns what has come for a browser.
func viewer(events chan []byte) string {
	synctest.Wait()
	var b strings.Builder
	for {
		select {
		case e, open := <-events:
			if !open {
				return b.String() + "(closed)"
			}
			b.Write(e)
		default:
			return b.String()
		}
	}
}

// All browsers share one stream of the daemon, which ends when the last one goes. One that comes
// later is told at once how it stands.
func TestOneStreamForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		h := newHub(u.data, time.Now)
		first := h.join()
		if got := viewer(first); got != "event: connection\ndata: {\"state\":\"reconnecting\"}\n\nevent: connection\ndata: {\"state\":\"live\"}\n\n" {
			t.Errorf("at first: %q", got)
		}
		second := h.join()
		if got := viewer(second); got != "event: connection\ndata: {\"state\":\"live\"}\n\n" {
			t.Errorf("a second: %q", got)
		}
		fmt.Fprint(u.to, "id: a-1\n: alive\n\nid: a-2\nevent: record\ndata: {\"pod\":\"a/b\"}\n\n")
		want := "event: record\ndata: {\"pod\":\"a/b\"}\n\n"
		if a, b := viewer(first), viewer(second); a != want || b != want {
			t.Errorf("%q and %q", a, b)
		}
		h.leave(first)
		h.leave(second)
		synctest.Wait()
		if _, err := fmt.Fprint(u.to, "x"); err == nil || len(u.opened) != 1 {
			t.Errorf("%d streams, and the last is read on: %v", len(u.opened), err)
		}
	})
}

// A stream that ends is followed by another, which goes on where it was. One that breaks is stale
// since it was heard last.
func TestStreamsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		h := newHub(u.data, time.Now)
		defer h.close()
		events := h.join()
		viewer(events)
		fmt.Fprint(u.to, "id: a-7\nevent: end\ndata: {\"kind\":\"Problem\",\"reason\":\"StreamEnded\"}\n\n")
		if got := viewer(events); !strings.Contains(got, "reconnecting") {
			t.Errorf("after the end: %q", got)
		}
		time.Sleep(leastPause)
		if got := viewer(events); !strings.Contains(got, "live") || len(u.opened) != 2 {
			t.Errorf("again: %q, %q", got, u.opened)
		}
		heard := time.Now()
		fmt.Fprint(u.to, "id: a-9\n: alive\n\n")
		time.Sleep(silentTime)
		if got := viewer(events); !strings.Contains(got, `"state":"stale","since":"`+heard.UTC().Format(time.RFC3339)) || !strings.Contains(got, errSilent.Error()) {
			t.Errorf("silent: %q", got)
		}
		u.err = &api.Problem{Reason: api.NotLeading, Leader: "berth-2", Code: 503}
		time.Sleep(mostPause)
		if got := viewer(events); !strings.Contains(got, `"state":"notLeading"`) || !strings.Contains(got, `"leader":"berth-2"`) || u.opened[2] != "a-9" {
			t.Errorf("not leading: %q, %q", got, u.opened)
		}
		u.err = errors.New("connection refused")
		before := len(u.opened)
		time.Sleep(4 * mostPause)
		if got := viewer(events); !strings.Contains(got, "connection refused") || len(u.opened) > before+4 || len(u.opened) < before+3 {
			t.Errorf("refused: %q after %d", got, len(u.opened)-before)
		}
		u.err = &api.Problem{Reason: api.TooMany, Code: 429}
		time.Sleep(time.Minute)
		before = len(u.opened)
		time.Sleep(4 * refusedPause)
		if len(u.opened) > before+5 || u.opened[len(u.opened)-1] != "a-9" {
			t.Errorf("too many: %q after %d", u.opened[len(u.opened)-1], len(u.opened)-before)
		}
		u.err = &api.Problem{Reason: api.BadRequest, Code: 400}
		time.Sleep(4 * refusedPause)
		if u.opened[len(u.opened)-1] != "" {
			t.Errorf("a refused id is sent again: %q", u.opened[len(u.opened)-1])
		}
	})
}

// A browser that is too slow is cut off, and holds up nobody.
func TestSlowBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		h := newHub(u.data, time.Now)
		defer h.close()
		slow, quick := h.join(), h.join()
		for range mostWaiting + 1 {
			synctest.Wait()
			fmt.Fprint(u.to, "event: record\ndata: {}\n\n")
			viewer(quick)
		}
		if got := viewer(slow); !strings.HasSuffix(got, "(closed)") {
			t.Error("the slow one is served on")
		}
		fmt.Fprint(u.to, "event: counts\ndata: {}\n\n")
		if got := viewer(quick); got != "event: counts\ndata: {}\n\n" {
			t.Errorf("the quick one has %q", got)
		}
	})
}

// A browser's stream lasts as long as the browser reads it.
func TestStreamLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		u := &upstream{}
		s := NewServer(Options{Data: u.data}, Port)
		l := &memory{conns: make(chan net.Conn), closed: ctx.Done()}
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, l) }()
		r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:9259"+api.Prefix+"watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: s.session.cookie, Value: s.session.token})
		reply, err := (&http.Transport{DialContext: l.dial}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		lines, last := 0, ""
		read := make(chan struct{})
		go func() {
			defer close(read)
			for from := bufio.NewScanner(reply.Body); from.Scan(); lines++ {
				if from.Text() != "" {
					last = from.Text()
				}
			}
		}()
		for range 40 {
			time.Sleep(aliveTime)
			fmt.Fprint(u.to, "id: a-1\n: alive\n\n")
		}
		fmt.Fprint(u.to, "event: record\ndata: {}\n\n")
		synctest.Wait()
		if last != "data: {}" || lines < 40 {
			t.Errorf("after ten minutes it has %q last, of %d lines", last, lines)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		<-read
	})
}
