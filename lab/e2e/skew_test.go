package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/chaos"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// skew is a program of lab/skew: the control planes of these tests are then of the
// other minor version of Kubernetes that Berth serves (make skew).
var skew = flag.String("skew", "", "the program that hosts kube-apiserver and kube-controller-manager in place of this one")

// needsSkew skips a test that needs control planes of two versions. It returns the programs
// that host that of this version and that of the other one.
func needsSkew(t *testing.T) (own, other string) {
	t.Helper()
	if *skew == "" {
		t.Skip("needs the API server of the other minor version: make skew")
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return own, *skew
}

// serverVersion is what the API server says of itself.
func (f *field) serverVersion() string {
	f.Helper()
	v, err := f.client.Discovery().ServerVersion()
	if err != nil {
		f.Fatal(err)
	}
	return v.GitVersion
}

// The API server becomes one of the other minor version and then one of this version again,
// with the same data, while pods come all the time, of which some want a device. All pods
// are bound, no device is given twice, and Berth says with which version it works.
func TestUpgradeAndDowngrade(t *testing.T) {
	own, other := needsSkew(t)
	const nodes, devices = 10, 8
	f := newFieldOn(t, start(t, cluster.Options{ControlPlane: own}, 0), "upgrade")
	f.regrets = regexp.MustCompile(alarms) // a server that has just started knows nobody's rights yet
	f.sameNodes(nodes, "100", 110)
	f.deviceClass()
	for i := range nodes {
		f.slice(i, devices, 0)
	}
	f.claimTemplate()
	berth := f.berth(cluster.SchedulerOptions{})
	created, stop := f.stream(nodes * devices)
	before := f.serverVersion()
	for _, program := range []string{other, own} {
		f.await("pods to be bound", func() string { return atLeast(bound(f.listed()), int(created.Load())) })
		if _, err := f.cluster.ChangeControlPlane(t.Context(), program); err != nil {
			t.Fatal(err)
		}
		if now := f.serverVersion(); (now == before) != (program == own) {
			t.Errorf("the API server is %s, it was %s", now, before)
		}
		minor := regexp.MustCompile(`^v(\d+\.\d+)`).FindStringSubmatch(f.serverVersion())[1]
		f.await("the version to be read", func() string {
			if !strings.Contains(f.awaitAdmin(berth), fmt.Sprintf("berth_api_server_version_skew{version=%q}", minor)) {
				return "another one is known than " + minor
			}
			return ""
		})
		n := int(created.Load())
		f.await("pods to be created and bound beside the other server", func() string { return atLeast(bound(f.listed()), n+20) })
	}
	n := stop()
	f.await("all pods to be bound", func() string { return missing(bound(f.listed()), n) })
	f.checkRoom()
	f.checkClaims(n / pace)
	f.create(withTemplate(f.podsOf("rest", nodes*devices-n/pace+5, "1"))...)
	f.await("all devices to be given", func() string { return missing(bound(f.listed()), n+nodes*devices-n/pace) })
	f.checkClaims(nodes * devices)
}

func atLeast(n, want int) string { return missing(min(n, want), want) }

// One pod in pace of a stream wants a device.
const pace = 4

// stream creates pods one after the other, each until it is there, and says how many. stop
// ends that, as does the last device.
func (f *field) stream(devices int) (created *atomic.Int64, stop func() int) {
	created = &atomic.Int64{}
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan struct{})
	beat := time.NewTicker(glance)
	go func() {
		defer close(done)
		for n := int64(0); n < int64(pace*devices); n = created.Load() {
			select {
			case <-beat.C:
			case <-ctx.Done():
				return
			}
			pods := f.podsOf(fmt.Sprintf("stream-%d", n), 1, "1")
			if n%pace == pace-1 {
				withTemplate(pods)
			}
			_, err := f.client.CoreV1().Pods(f.name).Create(context.WithoutCancel(ctx), pods[0], metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				created.Add(1)
			}
		}
	}()
	stop = func() int {
		cancel()
		<-done
		beat.Stop()
		return int(created.Load())
	}
	f.Cleanup(func() { stop() })
	return created, stop
}

// Two replicas on full nodes, with pods and nodes that come and go, while the API server
// changes between the two versions again and again: nothing is lost, bound twice or
// over-committed, nobody binds without the lease.
func TestChaosOfUpgrades(t *testing.T) {
	_, other := needsSkew(t)
	r, err := chaos.Run(t.Context(), t.Output(), chaos.Options{
		Time: time.Minute, Nodes: 20, Replicas: 2, Seed: 1, Next: other, Only: []string{chaos.OtherVersion},
		Binary: filepath.Join(programs(t), cluster.Berth),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	if r.Bindings < 80 || r.Faults[chaos.OtherVersion] < 2 {
		t.Errorf("%d bindings, faults %v: hardly anything happened", r.Bindings, r.Faults)
	}
}

// The other version does not serve DeviceTaintRules. That costs no pod anything: a pod with
// a claim is bound, too. When the API server is one of this version they are found without a
// restart, and when it is one of the other version again, they are missed again.
func TestUnservedAPIs(t *testing.T) {
	own, other := needsSkew(t)
	f := newFieldOn(t, start(t, cluster.Options{ControlPlane: other}, 0), "unserved")
	f.regrets = regexp.MustCompile(alarms) // a server that has just started knows nobody's rights yet
	f.sameNodes(3, "30", 110)
	f.deviceClass()
	f.slice(0, 2, 0)
	f.claimTemplate()
	berth := f.berth(cluster.SchedulerOptions{})
	const rules = "devicetaintrules.resource.k8s.io"
	f.awaitAdmin(berth)
	_, named := f.ask(berth, client{config: f.cluster.AdminConfig()}, "/readyz/missing")
	if !strings.Contains(named, rules+": not served") {
		t.Errorf("/readyz/missing says %q, nothing of %s", named, rules)
	}
	if line := fmt.Sprintf("resource=%q", rules); !strings.Contains(f.log(berth), line) {
		t.Errorf("no line of the log has %s", line)
	}
	if n := f.unlisted(berth, rules); n != 1 {
		t.Errorf("berth_unlisted_kinds of %s is %d", rules, n)
	}
	f.create(withTemplate(f.podsOf("claiming", 1, "1"))...)
	f.create(f.podsOf("plain", 10, "1")...)
	f.awaitBound(11)

	if _, err := f.cluster.ChangeControlPlane(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	f.await("DeviceTaintRules to be found", func() string { return missing(f.unlisted(berth, rules), 0) })
	if _, err := f.cluster.ChangeControlPlane(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.await("DeviceTaintRules to be missed", func() string { return missing(f.unlisted(berth, rules), 1) })
	f.create(f.podsOf("after", 5, "1")...)
	f.awaitBound(16)
	f.checkRoom()
}

// unlisted is the value of berth_unlisted_kinds for a resource.
func (f *field) unlisted(s *cluster.Scheduler, resource string) int {
	return f.metric(s, "berth_unlisted_kinds", fmt.Sprintf("resource=%q", resource))
}
