package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apiserver "k8s.io/apiserver/pkg/server"
	serverfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/client-go/kubernetes/scheme"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/edge/access"
	"github.com/berth-scheduler/berth/edge/config"
)

// Options say what is served.
type Options struct {
	Healthz, Livez, Readyz []healthz.HealthChecker
	// Notices are shown by /readyz where it fails or is asked for details.
	Notices []Notice
	// Config is shown at /configz, without its secrets.
	Config func() *configv1.KubeSchedulerConfiguration
	// Refresh brings the metrics up to date; it is called before they are read.
	Refresh func()
	// Resources serves the pods' resources; nothing is served while Leads says no.
	Resources http.Handler
	Leads     func() bool
	// Berth serves what is Berth's own, below /berth/; nil: nothing is.
	Berth http.Handler
	// AboutPod returns the one pod that a request below /berth/ is about. Whoever may get
	// that pod is answered, too; nil: nobody else than those who may get the path.
	AboutPod func(*http.Request) (pod types.NamespacedName, ok bool)
	// Flags are shown at /flagz, unless nil.
	Flags *cliflag.NamedFlagSets
	// Status is the version that is shown at /statusz, unless nil.
	Status compatibility.EffectiveVersion
}

// Notice is something about the scheduler that fails no check.
type Notice struct {
	// Name is the path below /readyz/ that serves the reason to those with rights.
	Name string
	// Read returns a phrase for anybody, which names no object, value or error, and the
	// reason. An empty phrase shows nothing.
	Read func() (phrase, reason string)
}

// Secure is where and to whom it is served.
type Secure struct {
	Serving        *apiserver.SecureServingInfo
	Authentication apiserver.AuthenticationInfo
	Authorization  apiserver.AuthorizationInfo
}

// Server is an endpoint that listens.
type Server struct {
	stop             chan struct{}
	stopped, silence <-chan struct{}
}

// Start listens and serves in the background. shutdown is how long requests
// under way may take when it is stopped.
func Start(s Secure, o Options, shutdown time.Duration) (*Server, error) {
	srv := &Server{stop: make(chan struct{})}
	var err error
	srv.stopped, srv.silence, err = serve(s.Serving, guarded(Handler(o), s, o.AboutPod), shutdown, srv.stop)
	if err != nil {
		close(srv.stop)
		return nil, fmt.Errorf("secure endpoint: %w", err)
	}
	return srv, nil
}

// Stop stops listening and waits for requests under way.
func (s *Server) Stop() {
	close(s.stop)
	<-s.silence
	klog.Background().Info("[graceful-termination] secure server has stopped listening")
	<-s.stopped
	klog.Background().Info("[graceful-termination] secure server is exiting")
}

// guarded lets only those in who may.
func guarded(open http.Handler, s Secure, aboutPod func(*http.Request) (types.NamespacedName, bool)) http.Handler {
	requests := &apirequest.RequestInfoFactory{}
	h := filters.WithAuthorization(open, s.Authorization.Authorizer, scheme.Codecs)
	if aboutPod != nil {
		h = access.Guard(open, h, s.Authorization.Authorizer, aboutPod)
	}
	h = filters.WithAuthentication(h, s.Authentication.Authenticator, filters.Unauthorized(scheme.Codecs), nil, nil)
	h = filters.WithRequestInfo(h, requests)
	h = filters.WithCacheControl(h)
	h = serverfilters.WithHTTPLogging(h)
	return admitted(serverfilters.WithPanicRecovery(h, requests))
}

// blockProfileRate is how long goroutines wait, in nanoseconds, for each wait
// that the block profile notes. kube-scheduler notes all; a scheduler's pools
// wait for work all the time, and noting that takes a twentieth of its CPU.
const blockProfileRate = 100_000_000

// component is the name under which users and tools know the paths.
const component = "kube-scheduler"

// Handler serves the paths that kube-scheduler serves, to anybody.
func Handler(o Options) http.Handler {
	paths := mux.NewPathRecorderMux(component)
	healthz.InstallHandler(paths, o.Healthz...)
	healthz.InstallLivezHandler(paths, append([]healthz.HealthChecker{healthz.PingHealthz}, o.Livez...)...)
	healthz.InstallReadyzHandler(paths, o.Readyz...)
	for _, n := range o.Notices {
		paths.HandleFunc("/readyz/"+n.Name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, reason := n.Read()
			fmt.Fprintln(w, cmp.Or(reason, "ok"))
		})
	}

	metrics := legacyregistry.HandlerWithReset()
	paths.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		o.Refresh()
		metrics.ServeHTTP(w, r)
	})
	paths.HandleFunc("/metrics/resources", func(w http.ResponseWriter, r *http.Request) {
		if o.Leads() {
			o.Resources.ServeHTTP(w, r)
		}
	})
	if o.Berth != nil {
		paths.HandlePrefix("/berth/", o.Berth)
	}
	slis.SLIMetricsWithReset{}.Install(paths)
	paths.Handle("/configz", configz(o.Config))

	if *o.Config().EnableProfiling {
		routes.Profiling{}.Install(paths)
		if *o.Config().EnableContentionProfiling {
			goruntime.SetBlockProfileRate(blockProfileRate)
		}
		routes.DebugFlags{}.Install(paths, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	}
	if o.Flags != nil {
		flagz.Install(paths, component, flagz.NamedFlagSetsReader{FlagSets: *o.Flags})
	}
	if o.Status != nil {
		statusz.Install(paths, component, statusz.NewRegistry(o.Status, statusz.WithListedPaths(paths.ListedPaths())))
	}
	return placed(noticed(paths, o.Notices))
}

// noticed adds the phrases of notices to /readyz, where it fails or is asked for details.
// Anybody may ask it, so reasons stay with the paths of the notices.
func noticed(h http.Handler, notices []Notice) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			h.ServeHTTP(w, r)
			return
		}
		answer := &answered{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(answer, r)
		if answer.code == http.StatusOK && !r.URL.Query().Has("verbose") {
			return
		}
		for _, n := range notices {
			if phrase, _ := n.Read(); phrase != "" {
				fmt.Fprintf(w, "%s; see /readyz/%s\n", phrase, n.Name)
			}
		}
	})
}

// answered notes the status of an answer.
type answered struct {
	http.ResponseWriter
	code int
}

// Unwrap returns the writer below, for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the status.
func (a *answered) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// configz shows the configuration as JSON, under the name that kube-scheduler
// has for it.
func configz(c func() *configv1.KubeSchedulerConfiguration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body, err := json.Marshal(map[string]any{"componentconfig": config.Redacted(c())})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body)
	})
}
