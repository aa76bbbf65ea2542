package chaos

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-scheduler/berth/sim/apiserver"
)

// network is what lies between one process and the API server.
type network struct {
	*play
	process *process

	mu     sync.Mutex
	dead   chan struct{} // closed when the process has ended
	bodies map[*apiserver.Body]bool
}

func newNetwork(p *play, of *process) *network {
	return &network{play: p, process: of, dead: make(chan struct{}), bodies: map[*apiserver.Body]bool{}}
}

var (
	errDead  = errors.New("the process has ended")
	errReset = syscall.ECONNRESET
	errLost  = errors.New("http2: client connection lost")
	errDial  = errors.New("dial tcp: connect: no route to host")
)

// kill ends all connections; none is made again.
func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.dead:
		return
	default:
	}
	close(n.dead)
	n.endBodies(errDead)
}

// cut ends the connections as they are; others can be made.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endBodies(errReset)
}

func (n *network) endBodies(err error) {
	for b := range n.bodies { // any order: all end
		b.End(err)
	}
	clear(n.bodies)
}

func (n *network) alive() bool {
	select {
	case <-n.dead:
		return false
	default:
		return true
	}
}

// wait waits. It is an error when the client has given up or the process ended.
func (n *network) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.dead:
		return errDead
	}
}

// connectionPatience is after what time a client finds out that nobody answers
// its pings.
const connectionPatience = 45 * time.Second

// hang lets the request wait until its client gives up, or the fault is over.
func (n *network) hang(ctx context.Context, f *fault) error {
	d := min(time.Until(f.to), connectionPatience)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.healed:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.dead:
		return errDead
	}
	return errLost
}

// RoundTrip sends a request, if the enemy lets it pass, and brings its reply, if
// the enemy lets that pass.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, class := r.Context(), classOf(r)
	if !n.alive() {
		return nil, errDead
	}
	if asleep := time.Until(n.process.wakes()); asleep > 0 {
		return nil, cmp.Or(n.wait(ctx, asleep), error(errReset))
	}
	drawn := n.faults.draw(n.process.name + " " + r.Method + " " + r.URL.Path)
	f := n.faults.of(n.process.replica, n.process.leads(), drawn, func(f *fault) bool { return f.onRequest(class) && f.ofKind(r.URL.Path) })
	if f != nil && f.does == unreachable {
		return nil, errDial
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	r, err := read(r)
	if err != nil {
		return nil, err
	}
	n.check.sent(n.process, r, class)
	defer n.check.answered(n.process, r, class)
	if err := n.wait(ctx, latency(drawn)); err != nil {
		return nil, err
	}
	if f == nil {
		return n.reply(r, drawn>>20)
	}
	n.logf("%s: %s %s %s", n.process.name, f.does, r.Method, r.URL.Path)
	return n.suffer(r, f, drawn)
}

// read returns the request with its body as it is sent: now, whenever it is served.
func read(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context()) // a copy
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, _ = r.GetBody()
	return r, nil
}

// latency is what a request or reply takes: the same for the same draw.
func latency(drawn uint64) time.Duration {
	return 200*time.Microsecond + time.Duration(drawn%1_000_000)
}

// suffer has the fault happen to the request.
func (n *network) suffer(r *http.Request, f *fault, drawn uint64) (*http.Response, error) {
	ctx := r.Context()
	switch f.does {
	case slowRequest:
		if err := n.wait(ctx, min(f.by, 1500*time.Millisecond)*time.Duration(drawn>>8%100)/100); err != nil {
			return nil, err
		}
		return n.reply(r, drawn>>20)
	case slowReply:
		w, err := n.reply(r, drawn>>20)
		if err == nil {
			err = n.wait(ctx, f.by*time.Duration(drawn>>8%100)/100)
		}
		return orClose(w, err)
	case lostRequest:
		return nil, errReset
	case lostReply:
		w, err := n.reply(r, drawn>>20)
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return orClose(w, err)
	case hangRequest:
		return nil, n.hang(ctx, f)
	case hangReply:
		w, err := n.reply(r, drawn>>20)
		if err == nil {
			err = n.hang(ctx, f)
		}
		return orClose(w, err)
	case cutBody:
		return n.cutReply(r, drawn)
	case refused:
		return n.refusal(r, f.code), nil
	case failReply:
		w, err := n.reply(r, drawn>>20)
		if err != nil {
			return nil, err
		}
		_ = w.Body.Close()
		return n.refusal(r, f.code), nil
	case lie:
		return n.answer(r, licenceExtender{n, drawn>>8 | 1}, drawn>>20)
	case crashAt:
		go n.crash(n.process)
		return nil, n.wait(ctx, time.Hour)
	case crashAfter:
		w, err := n.reply(r, drawn>>20)
		go n.crash(n.process)
		if err == nil {
			err = n.wait(ctx, time.Hour)
		}
		return orClose(w, err)
	}
	return n.reply(r, drawn>>20)
}

func orClose(w *http.Response, err error) (*http.Response, error) {
	if err != nil && w != nil {
		_ = w.Body.Close()
		return nil, err
	}
	return w, err
}

// reply has the server or the extender answer, and brings the answer.
func (n *network) reply(r *http.Request, drawn uint64) (*http.Response, error) {
	if r.URL.Host == extenderHost {
		return n.answer(r, licenceExtender{network: n}, drawn)
	}
	n.check.arrived(n.process.name, r, n.server.Revision())
	return n.answer(r, n.server, drawn)
}

func (n *network) answer(r *http.Request, by http.Handler, drawn uint64) (*http.Response, error) {
	w := apiserver.Do(by, r.WithContext(apiserver.As(r.Context(), n.process.name)))
	if apiserver.Watches(r) {
		body := w.Body.(*apiserver.Body)
		n.mu.Lock()
		n.bodies[body] = true
		n.mu.Unlock()
		if !n.alive() {
			body.End(errDead)
		}
		return w, nil
	}
	return orClose(w, n.wait(r.Context(), max(latency(drawn), time.Until(n.process.wakes()))))
}

// cutReply brings the first part of the answer; a watch ends some time later.
func (n *network) cutReply(r *http.Request, drawn uint64) (*http.Response, error) {
	w, err := n.reply(r, drawn>>20)
	if err != nil {
		return nil, err
	}
	body := w.Body.(*apiserver.Body)
	if apiserver.Watches(r) {
		time.AfterFunc(time.Duration(drawn%2_000_000_000), func() { body.End(io.ErrUnexpectedEOF) })
		return w, nil
	}
	whole, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	part := apiserver.NewBody()
	_, _ = part.Write(whole[:len(whole)*int(drawn%100)/100])
	part.End(io.ErrUnexpectedEOF)
	w.Body = part
	return w, nil
}

// refusal is the API server's error of that code.
func (n *network) refusal(r *http.Request, code int) *http.Response {
	var err *apierrors.StatusError
	switch code {
	case http.StatusTooManyRequests:
		err = apierrors.NewTooManyRequests("the server is busy", 1)
	case http.StatusConflict:
		err = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("the enemy changed it"))
	default:
		err = apierrors.NewGenericServerResponse(code, r.Method, schema.GroupResource{}, "", "the enemy says so", 0, true)
	}
	w := httptest.NewRecorder()
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if code == http.StatusBadGateway { // a proxy's: no Status
		w.WriteHeader(code)
		fmt.Fprint(w, "<html>bad gateway</html>")
	} else {
		apiserver.Refuse(w, r, err)
	}
	response := w.Result()
	response.Request = r
	return response
}

// name is the pod that a request names.
func podOf(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	for i := range parts {
		if parts[i] == "pods" && i > 0 && i+1 < len(parts) {
			return parts[i-1] + "/" + parts[i+1]
		}
	}
	return ""
}
