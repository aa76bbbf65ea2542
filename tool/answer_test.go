package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// questions are all commands that ask a daemon.
var questions = []string{"top", "status", "events shop/cart", "events shop/cart --follow", "why shop/cart", "why shop/cart -o json", "why --all", "why --all -o yaml"}

// A redirect is not followed: neither to a server without TLS nor to another host, and the
// token is sent to nobody else.
func TestNoRedirectIsFollowed(t *testing.T) {
	stranger := func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect is followed, with %q", r.Header.Get("Authorization"))
	}
	plain, other := httptest.NewServer(http.HandlerFunc(stranger)), httptest.NewTLSServer(http.HandlerFunc(stranger))
	defer plain.Close()
	defer other.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, to := range []string{plain.URL, other.URL} {
			flags := scheduler(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+r.URL.Path, code) })
			for _, q := range questions {
				status, out, err := berth("", append(strings.Fields(q), flags...)...)
				if want := fmt.Sprintf(`the answer is a redirect (%d) to "%s/`, code, to); status != exitInvalid || out != "" || !strings.Contains(err, want) {
					t.Errorf("%s: %d %q %q, want %s", q, status, out, err, want)
				}
			}
		}
	}
}

// A redirect of the API server is not followed either.
func TestNoRedirectOfTheAPIServerIsFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect is followed, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	for _, q := range []string{"simulate", "why shop/cart", "fit", "top --daemon auto --once", "status"} {
		status, _, err := berth("", append(strings.Fields(q), "--kubeconfig", kubeconfigFor(t, server.URL))...)
		if want := fmt.Sprintf(`the answer is a redirect (307) to "%s/`, other.URL); status != exitInvalid || !strings.Contains(err, want) {
			t.Errorf("%s: %d %q, want %s", q, status, err, want)
		}
	}
}

// What does not say that it is the answer is none: an empty object, another kind, another
// version, a page for people.
func TestAnswersOfAnotherKind(t *testing.T) {
	for name, answer := range map[string]string{"empty": "{}", "another kind": `{"apiVersion": "berth.dev/v1alpha1", "kind": "PendingList"}`,
		"another version": `{"apiVersion": "v1", "kind": "Summary"}`, "null": "null", "a page": "<html>"} {
		flags := scheduler(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		for _, q := range questions {
			status, out, err := berth("", append(strings.Fields(q), flags...)...)
			if status != exitInvalid || out != "" || name != "a page" && !strings.Contains(err, "this is not the answer of berth-scheduler") {
				t.Errorf("%s: %s: %d %q %q", name, q, status, out, err)
			}
		}
	}
}

// daemonAt is a way to a server with small bounds.
func daemonAt(t *testing.T, answer http.HandlerFunc) *daemon {
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(base, s.Client(), func() {})
	d.most, d.patience = 1<<20, time.Hour
	return d
}

// Of an answer without an end no more is read than its bound; and a server that sends
// nothing, or nothing more, is given up.
func TestEndlessAnswers(t *testing.T) {
	written, gone := 0, make(chan struct{}, 1)
	d := daemonAt(t, func(w http.ResponseWriter, _ *http.Request) {
		block := []byte(strings.Repeat(" ", 1<<16))
		for written < 1<<30 {
			n, err := w.Write(block)
			if written += n; err != nil {
				break
			}
		}
		gone <- struct{}{}
	})
	var s api.Summary
	if err := d.get(t.Context(), "summary", nil, "Summary", &s); err == nil || err.Error() != "the daemon's answer: is longer than 1 MiB" {
		t.Error(err)
	}
	if <-gone; written > 64<<20 {
		t.Errorf("%d bytes of an endless answer were sent", written)
	}
	stop := make(chan struct{})
	defer close(stop)
	for name, begin := range map[string]func(http.ResponseWriter){
		"nothing": func(http.ResponseWriter) {},
		"a part": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": alive\n\n")
			_ = http.NewResponseController(w).Flush()
		},
	} {
		d := daemonAt(t, func(w http.ResponseWriter, r *http.Request) {
			begin(w)
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		})
		d.patience = 20 * time.Millisecond
		if err := d.get(t.Context(), "summary", nil, "Summary", &s); err == nil || !strings.Contains(err.Error(), errSilent.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if err := readStream(t.Context(), d); err == nil || !strings.Contains(err.Error(), errSilent.Error()) {
			t.Errorf("%s of a stream: %v", name, err)
		}
	}
}

// readStream reads a stream to its end.
func readStream(ctx context.Context, d *daemon) error {
	body, err := d.watch(ctx, nil, "")
	if err != nil {
		return err
	}
	defer body.Close()
	buffer := make([]byte, 64)
	for {
		if _, err := body.Read(buffer); err != nil {
			return err
		}
	}
}

// streams is a daemon that ends each stream at once.
type streams struct{ opened int }

func (s *streams) RoundTrip(*http.Request) (*http.Response, error) {
	if s.opened++; s.opened > 100 {
		return nil, errors.New("asked without end")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader("event: end\ndata: {\"reason\": \"" + api.Ended + "\"}\n\n"))}, nil
}

// A daemon that ends each stream at once is asked for the next one once a second.
func TestStreamsThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streams{}
		d := newDaemon(&url.URL{Scheme: "https", Host: "a"}, &http.Client{Transport: s}, func() {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+streamPause/2)
		defer cancel()
		p := &recordPrinter{out: bufio.NewWriter(io.Discard)}
		if err := p.followAll(ctx, d, url.Values{}); err != nil || s.opened != 61 {
			t.Errorf("%d streams in a minute: %v", s.opened, err)
		}
	})
}
