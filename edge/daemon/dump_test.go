package daemon_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// A dump says how what is known differs from the API server, and nothing of the kind
// where it does not.
func TestDumpSaysWhatDiffersFromTheServer(t *testing.T) {
	s := &logstest.Sink{Verbosity: 3}
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{Server: apiserver.New()}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(c.Create(nodeOf("n")))
		must(c.Create(podOf("gone", "n")))
		m := &deaf{}
		d := daemonOf(t, c, s, "me", func(of loop.Machine) loop.Machine { m.Machine = of; return m })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx, nil) }()
		time.Sleep(time.Minute)
		d.Dump(ctx)
		alike := s.Lines()
		if slices.ContainsFunc(alike, func(l logstest.Line) bool { return l.Message == "Cache mismatch" }) {
			t.Error("there is a mismatch where all is alike")
		}
		m.on.Store(true)
		c.Delete("pods", "ns", "gone")
		must(c.Create(nodeOf("new")))
		time.Sleep(time.Second)
		d.Dump(ctx)
		for _, row := range logstest.Missing("edge/daemon, TestDumpSaysWhatDiffersFromTheServer", slices.Concat(alike, s.Lines())) {
			t.Errorf("not written: %s", row)
		}
		stop()
		<-ended
		time.Sleep(2 * time.Minute)
	})
}
