package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	utilcompatibility "k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	componentbase "k8s.io/component-base/config"
	leaderelectionoptions "k8s.io/component-base/config/options"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/server"
	"github.com/berth-scheduler/berth/edge/shadow"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// options are the command line's.
type options struct {
	configFile, writeConfigTo, master string
	version                           string
	shadow                            bool
	shadowTo                          string
	tracing                           string // file
	record                            recordOptions
	recordsMemory                     resource.QuantityValue
	deprecated                        deprecated
	lease                             componentbase.LeaderElectionConfiguration

	serving        *apiserveroptions.SecureServingOptions
	authentication *apiserveroptions.DelegatingAuthenticationOptions
	authorization  *apiserveroptions.DelegatingAuthorizationOptions
	metrics        *metrics.Options
	logs           *logs.Options
	gates          featuregate.MutableVersionedFeatureGate
	registry       compatibility.ComponentGlobalsRegistry

	nativePlugins []nativePlugin
	hosted        hostedOptions

	flags cliflag.NamedFlagSets
}

// deprecated flags; the configuration file has fields for most of them.
type deprecated struct {
	profiling, contentionProfiling bool
	kubeconfig, contentType        string
	qps                            float32
	burst                          int32
	maxUnschedulable               time.Duration
}

func newOptions() *options {
	o := &options{
		serving:        apiserveroptions.NewSecureServingOptions(),
		authentication: apiserveroptions.NewDelegatingAuthenticationOptions(),
		authorization:  apiserveroptions.NewDelegatingAuthorizationOptions(),
		metrics:        metrics.NewOptions(),
		logs:           logs.NewOptions(),
		gates:          features.New(),
		registry:       compatibility.NewComponentGlobalsRegistry(),
	}
	if err := o.registry.Register(compatibility.DefaultKubeComponent, utilcompatibility.DefaultBuildEffectiveVersion(), o.gates); err != nil {
		panic(err) // the first component of a new registry
	}
	o.recordsMemory.Quantity = resource.MustParse("64Mi")
	o.serving.BindPort = 10259
	o.serving.ServerCert.CertDirectory = "" // a certificate in memory, unless one is given
	o.serving.ServerCert.PairName = "kube-scheduler"
	o.authentication.TolerateInClusterLookupFailure = true
	o.authentication.RemoteKubeConfigFileOptional = true
	o.authorization.RemoteKubeConfigFileOptional = true
	defaults := config.Default().LeaderElection
	o.lease = componentbase.LeaderElectionConfiguration{
		LeaderElect: *defaults.LeaderElect, LeaseDuration: defaults.LeaseDuration, RenewDeadline: defaults.RenewDeadline,
		RetryPeriod: defaults.RetryPeriod, ResourceLock: defaults.ResourceLock,
		ResourceName: defaults.ResourceName, ResourceNamespace: defaults.ResourceNamespace,
	}
	o.addFlags()
	return o
}

func (o *options) addFlags() {
	misc := o.flags.FlagSet("misc")
	misc.StringVar(&o.configFile, "config", "", "The configuration file. It holds a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1.")
	misc.StringVar(&o.writeConfigTo, "write-config-to", "", "Write the configuration in effect, with its defaults, to this file and exit.")
	misc.StringVar(&o.master, "master", "", "The address of the Kubernetes API server. It overrides the address in the kubeconfig.")
	misc.Var(&o.recordsMemory, "records-memory", "How much memory the records of what happened to pods may take, 1Mi at least. They are served at /berth/v1/.")
	misc.BoolVar(&o.shadow, "shadow", false, "Schedule nothing and write nothing. Compare each choice of the scheduler that is in charge with Berth's own, and tell of the differences in the log and in the metrics berth_shadow_*.")
	misc.StringVar(&o.shadowTo, "shadow-to", "", "With --shadow, append each difference to this file, as a line of JSON. At 64 MiB the file is renamed to FILE.1 and begun anew.")
	o.record.addFlags(misc)
	misc.StringVar(&o.tracing, "tracing-config-file", "", "Trace attempts to schedule a pod, as this TracingConfiguration of apiserver.config.k8s.io/v1 says: where to send the spans (endpoint, OTLP over gRPC), and of how many attempts (samplingRatePerMillion).")
	o.serving.AddFlags(o.flags.FlagSet("secure serving"))
	o.authentication.AddFlags(o.flags.FlagSet("authentication"))
	o.authorization.AddFlags(o.flags.FlagSet("authorization"))
	o.deprecated.addFlags(o.flags.FlagSet("deprecated"))
	leaderelectionoptions.BindLeaderElectionFlags(&o.lease, o.flags.FlagSet("leader election"))
	o.registry.AddFlags(o.flags.FlagSet("feature gate"))
	o.metrics.AddFlags(o.flags.FlagSet("metrics"))
	logsapi.AddFlags(o.logs, o.flags.FlagSet("logs"))
	global := o.flags.FlagSet("global")
	global.StringVar(&o.version, "version", "", "Print the version and exit. --version=raw prints every field. --version=vX.Y.Z... sets the version that is reported.")
	global.Lookup("version").NoOptDefVal = "true"
}

func (d *deprecated) addFlags(fs *pflag.FlagSet) {
	const ignored = " Ignored when --config is given."
	fs.BoolVar(&d.profiling, "profiling", true, "Serve profiles at /debug/pprof."+ignored)
	fs.BoolVar(&d.contentionProfiling, "contention-profiling", true, "Profile waits for locks. It needs --profiling."+ignored)
	fs.StringVar(&d.kubeconfig, "kubeconfig", "", "The kubeconfig file with the address and the credentials of the API server. The default is the service account of the pod."+ignored)
	fs.StringVar(&d.contentType, "kube-api-content-type", "application/vnd.kubernetes.protobuf", "The content type of requests to the API server."+ignored)
	fs.Float32Var(&d.qps, "kube-api-qps", 50, "The number of requests per second to the API server."+ignored)
	fs.Int32Var(&d.burst, "kube-api-burst", 100, "The number of requests to the API server that may exceed the rate for a moment."+ignored)
	fs.DurationVar(&d.maxUnschedulable, "pod-max-in-unschedulable-pods-duration", 5*time.Minute,
		"The longest time that a pod stays unschedulable. After this time it is tried again, even if no event helps it.")
}

const mostRecordsBytes = 16 << 30

// config is the configuration in effect: the file's or the default, and what
// flags say instead.
func (o *options) config() (*config.Config, error) {
	reader := config.With(o.gates)
	if o.configFile != "" {
		c, err := reader.Load(o.configFile)
		if err != nil {
			return nil, err
		}
		return o.complete(reader, c)
	}
	c := reader.Default()
	o.applyDeprecated(c)
	return o.complete(reader, c)
}

// complete applies the flags that count beside a file, and checks the whole.
func (o *options) complete(reader config.Reader, c *config.Config) (*config.Config, error) {
	o.applyLease(&c.LeaderElection)
	if o.shadow {
		c.LeaderElection.LeaderElect = new(bool) // a lease would be a write
	}
	if err := reader.Validate(c); err != nil {
		return nil, err
	}
	return c, nil
}

func (o *options) applyDeprecated(c *config.Config) {
	changed := o.flags.FlagSet("deprecated").Changed
	if changed("profiling") {
		c.EnableProfiling = &o.deprecated.profiling
	}
	if changed("contention-profiling") {
		c.EnableContentionProfiling = &o.deprecated.contentionProfiling
	}
	if changed("kubeconfig") {
		c.ClientConnection.Kubeconfig = o.deprecated.kubeconfig
	}
	if changed("kube-api-content-type") {
		c.ClientConnection.ContentType = o.deprecated.contentType
	}
	if changed("kube-api-qps") {
		c.ClientConnection.QPS = o.deprecated.qps
	}
	if changed("kube-api-burst") {
		c.ClientConnection.Burst = o.deprecated.burst
	}
}

// ignoredFlags names the flags that were given in vain.
func (o *options) ignoredFlags() []string {
	if o.configFile == "" {
		return nil
	}
	return slices.DeleteFunc(o.given("deprecated"), func(name string) bool {
		return name == "--pod-max-in-unschedulable-pods-duration"
	})
}

// given names the flags of a group that are on the command line.
func (o *options) given(group string) []string {
	var names []string
	o.flags.FlagSet(group).VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// applyLease lets the flags on leader election override the file, one by one.
func (o *options) applyLease(c *configv1alpha1.LeaderElectionConfiguration) {
	changed := o.flags.FlagSet("leader election").Changed
	if changed("leader-elect") {
		c.LeaderElect = &o.lease.LeaderElect
	}
	if changed("leader-elect-lease-duration") {
		c.LeaseDuration = o.lease.LeaseDuration
	}
	if changed("leader-elect-renew-deadline") {
		c.RenewDeadline = o.lease.RenewDeadline
	}
	if changed("leader-elect-retry-period") {
		c.RetryPeriod = o.lease.RetryPeriod
	}
	if changed("leader-elect-resource-lock") {
		c.ResourceLock = o.lease.ResourceLock
	}
	if changed("leader-elect-resource-name") {
		c.ResourceName = o.lease.ResourceName
	}
	if changed("leader-elect-resource-namespace") {
		c.ResourceNamespace = o.lease.ResourceNamespace
	}
}

func (o *options) validate() error {
	errs := o.registry.Validate()
	errs = append(errs, features.Unsupported(o.gates)...)
	errs = append(errs, o.serving.Validate()...)
	errs = append(errs, o.authentication.Validate()...)
	errs = append(errs, o.authorization.Validate()...)
	errs = append(errs, o.metrics.Validate()...)
	if o.deprecated.maxUnschedulable <= 0 {
		errs = append(errs, errors.New("--pod-max-in-unschedulable-pods-duration must be greater than zero"))
	}
	if o.shadow && o.lease.LeaderElect && o.flags.FlagSet("leader election").Changed("leader-elect") {
		errs = append(errs, errors.New("--leader-elect: must not be true with --shadow, which writes nothing and so holds no lease"))
	}
	if o.shadow && o.tracing != "" {
		errs = append(errs, errors.New("--tracing-config-file: must not be given with --shadow, which makes no attempts"))
	}
	if o.shadowTo != "" && !o.shadow {
		errs = append(errs, errors.New("--shadow-to: needs --shadow"))
	}
	errs = append(errs, o.record.validate()...)
	if n := o.recordsMemory.Value(); n < records.LeastBytes || n > mostRecordsBytes {
		errs = append(errs, fmt.Errorf("--records-memory: must be from 1Mi to 16Gi, is %s", &o.recordsMemory.Quantity))
	}
	return utilerrors.NewAggregate(errs)
}

// secure is the endpoint, its Serving nil when --secure-port is 0.
func (o *options) secure() (server.Secure, error) {
	s := server.Secure{}
	if o.serving.BindPort == 0 {
		return s, nil
	}
	if err := o.checkFiles(); err != nil {
		return s, err
	}
	if err := o.defaultCertificate(); err != nil {
		return s, fmt.Errorf("self-signed certificate: %w", err)
	}
	if err := o.serving.ApplyTo(&s.Serving); err != nil {
		return s, err
	}
	if err := o.authentication.ApplyTo(&s.Authentication, s.Serving, nil); err != nil {
		return s, err
	}
	return s, o.authorization.ApplyTo(&s.Authorization)
}

// checkFiles reports why a file of the endpoint's flags may not be read.
func (o *options) checkFiles() error {
	cert, authn := &o.serving.ServerCert, o.authentication
	files := map[string]string{
		"--tls-cert-file": cert.CertKey.CertFile, "--tls-private-key-file": cert.CertKey.KeyFile,
		"--client-ca-file": authn.ClientCert.ClientCA, "--requestheader-client-ca-file": authn.RequestHeader.ClientCAFile,
	}
	for i, sni := range o.serving.SNICertKeys {
		files[fmt.Sprintf("--tls-sni-cert-key %d: certificate", i+1)], files[fmt.Sprintf("--tls-sni-cert-key %d: key", i+1)] = sni.CertFile, sni.KeyFile
	}
	var errs []error
	for _, flag := range slices.Sorted(maps.Keys(files)) {
		if err := untrusted.Check(files[flag], untrusted.Certificate); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
	}
	for flag, file := range map[string]string{"--authentication-kubeconfig": authn.RemoteKubeConfigFile, "--authorization-kubeconfig": o.authorization.RemoteKubeConfigFile} { // any order: each by itself
		if file == "" {
			continue
		}
		if err := untrusted.Kubeconfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// restConfig is how to reach the API server.
func (o *options) restConfig(c configv1alpha1.ClientConnectionConfiguration) (*rest.Config, error) {
	var rc *rest.Config
	var err error
	if c.Kubeconfig == "" && o.master == "" {
		rc, err = rest.InClusterConfig()
	} else if err = untrusted.Kubeconfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{}); err == nil {
		rc, err = clientcmd.BuildConfigFromFlags(o.master, c.Kubeconfig)
	}
	switch {
	case errors.Is(err, rest.ErrNotInCluster) && o.configFile != "":
		return nil, errors.New("no API server: with --config the kubeconfig is the one that the file names (clientConnection.kubeconfig), or give --master")
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, errors.New("no API server: give --kubeconfig or --master, or run as a pod of the cluster")
	case err != nil && c.Kubeconfig != "":
		return nil, fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	case err != nil:
		return nil, err
	}
	rc.DisableCompression = true
	rc.AcceptContentTypes = c.AcceptContentTypes
	rc.ContentType = c.ContentType
	rc.QPS = c.QPS
	rc.Burst = int(c.Burst)
	if o.shadow {
		rc.Wrap(shadow.ReadOnly)
	}
	rc.UserAgent = userAgent()
	return rest.AddUserAgent(rc, "scheduler"), nil
}

// writeConfig writes the configuration for its owner's eyes: it may hold keys.
func writeConfig(path string, c *config.Config) error {
	body, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("--write-config-to: %w", err)
	}
	return os.WriteFile(path, body, 0o600)
}
