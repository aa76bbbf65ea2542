package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/fence"
)

// What waits for its connection while the lease runs out is not sent, though its turn
// came before: neither a binding nor what client-go sends.
func TestLeaseRunsOutWhileConnecting(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var arrived atomic.Int32
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil && r.Proto == proto {
				arrived.Add(1)
			}
			answer(w, 201, nil)
		}))
		config := &rest.Config{QPS: -1}
		if s.EnableHTTP2 = proto == "HTTP/2.0"; s.EnableHTTP2 {
			config.Insecure = true
			s.StartTLS()
		} else {
			s.Start()
		}
		config.Host = s.URL
		var held atomic.Bool
		var connects func() // on the way to a connection
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			connects()
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		send := func(then func()) (bound machine.BindReply, patched error) {
			connects = then
			x, outcomes := executorOn(t, config, held.Load)
			held.Store(true)
			x.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
			bound = (<-outcomes).(machine.BindReply)
			held.Store(true)
			return bound, x.clients.Status.Patch(types.MergePatchType).AbsPath("/p").Body([]byte("{}")).Do(t.Context()).Error()
		}
		if bound, err := send(func() {}); bound.Result != machine.BindDone || err != nil || arrived.Load() != 2 {
			t.Fatalf("%s: bound %v (%v), patched %v, %d requests", proto, bound.Result, bound.Err, err, arrived.Load())
		}
		bound, err := send(func() { held.Store(false) })
		s.Close() // it has served all
		if bound.Result != machine.BindRefused || !errors.Is(bound.Err, fence.ErrNotLeading) || !errors.Is(err, fence.ErrNotLeading) {
			t.Errorf("%s: bound %v (%v), patched: %v", proto, bound.Result, bound.Err, err)
		}
		if n := arrived.Load() - 2; n > 0 {
			t.Errorf("%s: %d requests arrived", proto, n)
		}
	}
}
