package e2e

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// While another client takes all that the API server has for everybody, Berth
// keeps its lease and binds pods: its requests are under flow schemas of its own.
func TestFlood(t *testing.T) {
	const pods, flood = 100, 60
	small := []string{"--max-requests-inflight=20", "--max-mutating-requests-inflight=20"}
	f := newFieldOn(t, start(t, cluster.Options{APIServerFlags: small}, 0), "flood")
	f.sameNodes(10, "30", 110)
	holders := f.watchLease()
	p := f.proxy()
	options := replica("5s")
	options.Flags = []string{"--master=" + p.URL}
	f.berth(options)
	f.await("a leader", func() string { return missing(len(holders.seen()), 1) })

	f.flood(flood)
	f.await("requests to queue", f.calm)
	began := time.Now()
	f.create(f.podsOf("one", pods, "1")...)
	f.awaitBound(pods)
	f.awaitScheduledOnce()
	f.await("the lease to be renewed", func() string {
		lease, err := f.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(f.Context(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if renewed := lease.Spec.RenewTime.Time; renewed.Before(began.Add(time.Second)) {
			return "renewed last at " + renewed.String()
		}
		return ""
	})
	f.await("requests to queue still", f.calm) // else the flood is over too early
	if seen := holders.seen(); len(seen) != 1 {
		t.Errorf("holders of the lease: %q, want one", seen)
	}
	f.checkFlowSchemas(p)
}

// flood sends that many requests under kwok's identity, for which the API server
// has no flow schema of its own, and keeps them there until the test ends: they
// are status patches whose bodies never come.
func (f *field) flood(n int) {
	f.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.cluster.Kubeconfig(cluster.KWOK))
	if err != nil {
		f.Fatal(err)
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithTimeout(f.Context(), timeout)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
	ended := make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { ended <- struct{}{} }()
			for try := 0; try < 10 && ctx.Err() == nil; try++ {
				body, writer := io.Pipe()
				context.AfterFunc(ctx, func() { writer.Close() })
				request, err := http.NewRequestWithContext(ctx, http.MethodPatch,
					config.Host+"/api/v1/namespaces/"+f.name+"/pods/nobody/status", body)
				if err != nil {
					return
				}
				request.ContentLength = 1000
				request.Header.Set("Content-Type", "application/merge-patch+json")
				if response, err := client.Do(request); err == nil {
					response.Body.Close()
				}
				writer.Close()
			}
		}()
	}
	f.Cleanup(func() {
		stop()
		for range n {
			<-ended
		}
	})
}

var inQueue = regexp.MustCompile(`(?m)^apiserver_flowcontrol_current_inqueue_requests\{.*priority_level="global-default"\} (\d+)`)

// calm says that no request waits at the priority level that all share.
func (f *field) calm() string {
	text, err := f.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(f.Context())
	if err != nil {
		return err.Error()
	}
	for _, match := range inQueue.FindAllStringSubmatch(string(text), -1) {
		if n, err := strconv.Atoi(match[1]); err == nil && n > 0 {
			return ""
		}
	}
	return "no request waits"
}

// checkFlowSchemas checks under which flow schemas all requests through the
// proxy were.
func (f *field) checkFlowSchemas(p *proxy.Proxy) {
	f.Helper()
	list, err := f.client.FlowcontrolV1().FlowSchemas().List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	names := map[string]string{}
	for i := range list.Items {
		names[string(list.Items[i].UID)] = list.Items[i].Name
	}
	const lease, rest = "berth-scheduler-leader-election", "berth-scheduler"
	counts, wrong := map[string]int{}, map[string]int{}
	p.Count(func(e proxy.Exchange) bool {
		want, got := rest, names[e.FlowSchema]
		if strings.Contains(e.Path, "/leases") {
			want = lease
		}
		if counts[got]++; e.Forwarded && got != want {
			wrong[e.Method+" "+e.Path+" under "+got]++
		}
		return false
	})
	if len(wrong) > 0 || counts[lease] == 0 || counts[rest] == 0 {
		f.Errorf("requests by flow schema: %v; under the wrong one: %v", counts, wrong)
	}
}
