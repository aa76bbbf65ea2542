package failover

import (
	"bytes"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// What cannot be measured is refused before anything starts.
func TestValidate(t *testing.T) {
	good := Options{Nodes: 10, Pods: 1000, Runs: 1, Schedulers: []string{cluster.KubeScheduler}, Output: "table"}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"--nodes 0":         func(o *Options) { o.Nodes = 0 },
		"--runs 0":          func(o *Options) { o.Runs = 0 },
		"--pods 1001":       func(o *Options) { o.Pods = 1001 },
		`--output "xml"`:    func(o *Options) { o.Output = "xml" },
		`scheduler "cargo"`: func(o *Options) { o.Schedulers = []string{"cargo"} },
	} {
		o := good
		change(&o)
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

// A lease runs out so long after its last renewal as it says.
func TestExpiry(t *testing.T) {
	renewed := time.Unix(100, 0)
	got, err := expiryOf(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To(int32(15))}})
	if err != nil || !got.Equal(time.Unix(115, 0)) {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := expiryOf(&coordinationv1.Lease{}); err == nil {
		t.Error("a lease without a renewal has an end")
	}
}

// The table has a row for each turn.
func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := write(&b, []Result{{Scheduler: "berth", Nodes: 5, Pods: 7, Start: 1.5, Kill: 15.25}, {Scheduler: "kube-scheduler"}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 || lines[0] != "5 nodes, 7 pods" || !strings.Contains(lines[2], "15.25") {
		t.Errorf("%q", lines)
	}
}
