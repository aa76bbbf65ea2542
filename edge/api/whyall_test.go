package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Pods that fit and wait for more than a few seconds are said to, with the longest time.
func TestWhyAllOfPodsThatFit(t *testing.T) {
	f := stuck(t)
	f.pods["shop/big"].Spec.NodeName, f.pods["shop/small"].Spec.NodeName = "n1", "n1"
	for after, want := range map[time.Duration]string{
		23 * time.Second: "fitting now, and not placed yet; waiting for up to 23s: `berth status` says how it stands with the scheduler\n",
		2 * time.Second:  "fitting now, and not placed yet\n",
	} {
		f.pod("fits", "10m").CreationTimestamp = metav1.Time{Time: f.now.Add(-after)}
		if _, body := f.get("why/all?output=text", nil); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in\n%s", after, want, body)
		}
	}
}

// Pods that wait beside the pod and come first count in its fixes. Who may not list them is told
// that there are some, and of a few too many that not all were looked at.
func TestWhyWithOthers(t *testing.T) {
	f := newFixture(t)
	f.node("n1", "4")
	first := f.pod("first", "3")
	delete(f.pods, "shop/first")
	first.Namespace = "infra"
	f.pods["infra/first"] = first
	f.step(machine.PodSet{Pod: decode.Pod(first.DeepCopy())})
	full := f.pod("full", "4")
	full.Spec.NodeName = "n1"
	f.step(machine.PodSet{Pod: decode.Pod(full.DeepCopy())})
	f.pod("big", "3").CreationTimestamp = metav1.NewTime(f.now.Add(time.Minute))
	f.step(machine.ScheduleOne{})
	f.step(machine.ScheduleOne{})
	for name, want := range map[string]string{"infra/first": "infra/first comes first", hidden: hidden + " comes first"} {
		if name == hidden {
			f.reader = readerOf(lists{"shop": true}, true)
		}
		if _, body := f.get("why?pod=shop/big&output=text", nil); !strings.Contains(body, "add 2 nodes like n1") || !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
		f.reader = nil
	}
	for i := range mostBeside {
		p := f.pods["shop/big"].DeepCopy()
		p.Name = fmt.Sprintf("more-%d", i)
		p.UID = types.UID(p.Name)
		f.pods["shop/"+p.Name] = p
	}
	f.pageSize = pageSize
	if _, body := f.get("why?pod=shop/big&output=text", nil); !strings.Contains(body, "not all were let take their turn first") {
		t.Errorf("more pods wait than are read, and nobody says so:\n%s", body)
	}
}

// An ElasticQuota that the scheduler does not have is no list without pods.
func TestWhyNoElasticQuota(t *testing.T) {
	f := newFixture(t)
	code, body := f.get("why/all?namespace=web&workload=elasticquota/web", nil)
	if want := "elasticquota web/web: no profile of the configuration used here enables the plugin CapacityScheduling, so no ElasticQuota counts"; code != http.StatusNotFound || !strings.Contains(body, want+`"`) {
		t.Errorf("%d %s", code, body)
	}
}
