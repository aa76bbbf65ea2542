package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/leaderelection"
	component "k8s.io/component-base/config"
	componentv1alpha1 "k8s.io/component-base/config/v1alpha1"
	componentvalidation "k8s.io/component-base/config/validation"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// Validate reports everything in a complete configuration that kube-scheduler refuses,
// in kube-scheduler's words. Flags may change a configuration that was read; then it
// must be validated again.
func (r Reader) Validate(c *Config) error { return r.validate(c).ToAggregate() }

func (r Reader) validate(c *Config) field.ErrorList {
	errs := validateComponent(c)
	if *c.Parallelism <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("parallelism"), *c.Parallelism, "should be an integer value greater than zero"))
	}
	errs = append(errs, r.validateProfiles(field.NewPath("profiles"), c.Profiles)...)
	errs = append(errs, validatePercentage(field.NewPath("percentageOfNodesToScore"), c.PercentageOfNodesToScore)...)
	errs = append(errs, validateSeconds(field.NewPath("podInitialBackoffSeconds"), *c.PodInitialBackoffSeconds)...)
	errs = append(errs, validateSeconds(field.NewPath("podMaxBackoffSeconds"), *c.PodMaxBackoffSeconds)...)
	if *c.PodInitialBackoffSeconds <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("podInitialBackoffSeconds"), *c.PodInitialBackoffSeconds, "must be greater than 0"))
	}
	if *c.PodMaxBackoffSeconds < *c.PodInitialBackoffSeconds {
		errs = append(errs, field.Invalid(field.NewPath("podMaxBackoffSeconds"), *c.PodMaxBackoffSeconds, "must be greater than or equal to PodInitialBackoffSeconds"))
	}
	errs = append(errs, validateExtenders(field.NewPath("extenders"), c.Extenders)...)
	if len(c.Extenders) > 0 && r.gates.Enabled(features.GenericWorkload) {
		errs = append(errs, field.Forbidden(field.NewPath("extenders"),
			"not supported with feature gate GenericWorkload=true: a pod group is placed in one step, in which no extender is called"))
	}
	return errs
}

// validateComponent checks what every component's configuration holds: client and leader election.
func validateComponent(c *Config) field.ErrorList {
	var client component.ClientConnectionConfiguration
	var election component.LeaderElectionConfiguration
	if err := componentv1alpha1.Convert_v1alpha1_ClientConnectionConfiguration_To_config_ClientConnectionConfiguration(&c.ClientConnection, &client, nil); err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("clientConnection"), err)}
	}
	if err := componentv1alpha1.Convert_v1alpha1_LeaderElectionConfiguration_To_config_LeaderElectionConfiguration(&c.LeaderElection, &election, nil); err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("leaderElection"), err)}
	}
	path := field.NewPath("leaderElection")
	errs := componentvalidation.ValidateClientConnectionConfiguration(&client, field.NewPath("clientConnection"))
	errs = append(errs, componentvalidation.ValidateLeaderElectionConfiguration(&election, path)...)
	if election.LeaderElect && election.ResourceLock != "leases" {
		errs = append(errs, field.Invalid(path.Child("resourceLock"), election.ResourceLock, `resourceLock value must be "leases"`))
	}
	if e := election; e.LeaderElect && e.RenewDeadline.Duration > 0 && e.RenewDeadline.Duration <= time.Duration(leaderelection.JitterFactor*float64(e.RetryPeriod.Duration)) {
		// kube-scheduler says so when it makes the elector.
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), e.RenewDeadline, fmt.Sprintf("must be greater than %.1f times retryPeriod", leaderelection.JitterFactor)))
	}
	return errs
}

func validatePercentage(path *field.Path, percentage *int32) field.ErrorList {
	if percentage != nil && (*percentage < 0 || *percentage > 100) {
		return field.ErrorList{field.Invalid(path, *percentage, "not in valid range [0-100]")}
	}
	return nil
}

// validateSeconds: what no duration can hold would come out as a negative one.
func validateSeconds(path *field.Path, seconds int64) field.ErrorList {
	if longest := int64(math.MaxInt64 / time.Second); seconds > longest {
		return field.ErrorList{field.Invalid(path, seconds, fmt.Sprintf("must not be greater than %d", longest))}
	}
	return nil
}

func (r Reader) validateProfiles(path *field.Path, profiles []configv1.KubeSchedulerProfile) field.ErrorList {
	if len(profiles) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	first := map[string]int{}
	for i := range profiles {
		p, name := &profiles[i], *profiles[i].SchedulerName
		namePath := path.Index(i).Child("schedulerName")
		if name == "" {
			errs = append(errs, field.Required(namePath, ""))
		}
		if j, ok := first[name]; ok {
			errs = append(errs, field.Duplicate(namePath, fmt.Sprintf("%s, as in %s", name, path.Index(j).Child("schedulerName"))))
		} else {
			first[name] = i
		}
		errs = append(errs, validatePercentage(path.Index(i).Child("percentageOfNodesToScore"), p.PercentageOfNodesToScore)...)
		errs = append(errs, validatePlugins(path.Index(i).Child("plugins"), p.Plugins)...)
		errs = append(errs, r.validatePluginConfig(path.Index(i).Child("pluginConfig"), p.PluginConfig)...)
	}
	return append(errs, validateQueueSort(path, profiles)...)
}

// validatePlugins rejects plugins that no longer exist, and negative weights, which
// kube-scheduler accepts and which turn a plugin's preference around.
func validatePlugins(path *field.Path, plugins *configv1.Plugins) field.ErrorList {
	var errs field.ErrorList
	for _, pt := range points(plugins) {
		for i, plugin := range pt.set.Enabled {
			at := path.Child(pt.name, "enabled").Index(i)
			errs = append(errs, validateNotRemoved(at, plugin.Name)...)
			if plugin.Weight != nil && *plugin.Weight < 0 {
				errs = append(errs, field.Invalid(at.Child("weight"), *plugin.Weight, fmt.Sprintf("weight of %s must not be negative", plugin.Name)))
			}
		}
	}
	return errs
}

func validateNotRemoved(path *field.Path, plugin string) field.ErrorList {
	if !slices.Contains(removedPlugins, plugin) {
		return nil
	}
	// kube-scheduler puts the core group's version here, not the configuration's.
	reason := fmt.Sprintf("was invalid in version %q (KubeSchedulerConfiguration is version %q)", v1.SchemeGroupVersion, kind.GroupVersion())
	return field.ErrorList{field.Invalid(path, plugin, reason)}
}

func (r Reader) validatePluginConfig(path *field.Path, configs []configv1.PluginConfig) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, pc := range configs {
		if seen[pc.Name] {
			errs = append(errs, field.Duplicate(path.Index(i), pc.Name))
		}
		seen[pc.Name] = true
		errs = append(errs, validateNotRemoved(path.Index(i), pc.Name)...)
		errs = append(errs, plugins.ValidateArgs(path.Index(i).Child("args"), pc.Args.Object, features.Plugins(r.gates))...)
	}
	return errs
}

// validateQueueSort: there is one queue, so all profiles must sort it alike.
func validateQueueSort(path *field.Path, profiles []configv1.KubeSchedulerProfile) field.ErrorList {
	var errs field.ErrorList
	first := profiles[0].Plugins.QueueSort
	if n := len(first.Enabled); n > 1 {
		errs = append(errs, field.Invalid(path.Index(0).Child("plugins", "queueSort", "Enabled"), n, "only one queue sort plugin can be enabled"))
	}
	firstArgs := queueSortArgs(profiles[0], first)
	for i := 1; i < len(profiles); i++ {
		p := profiles[i]
		if !apiequality.Semantic.DeepEqual(first, p.Plugins.QueueSort) {
			errs = append(errs, field.Invalid(path.Index(i).Child("plugins", "queueSort"), setText(p.Plugins.QueueSort), "must be the same for all profiles"))
		}
		if args := queueSortArgs(p, first); args != nil && !apiequality.Semantic.DeepEqual(firstArgs, args) {
			errs = append(errs, field.Invalid(path.Index(i).Child("pluginConfig", "args"), string(args.Args.Raw), "queueSort must be the same for all profiles"))
		}
	}
	return errs
}

// queueSortArgs is what the profile configures for the queue sort plugin of set, nil if nothing.
func queueSortArgs(p configv1.KubeSchedulerProfile, set configv1.PluginSet) *configv1.PluginConfig {
	if len(set.Enabled) == 0 {
		return nil
	}
	for i, pc := range slices.Backward(p.PluginConfig) {
		if pc.Name == set.Enabled[0].Name {
			return &p.PluginConfig[i]
		}
	}
	return nil
}

// setText shows a plugin set in an error: enabled names, then disabled ones with a minus sign.
func setText(set configv1.PluginSet) string {
	var names []string
	for _, p := range set.Enabled {
		names = append(names, p.Name)
	}
	for _, p := range set.Disabled {
		names = append(names, "-"+p.Name)
	}
	return strings.Join(names, " ")
}

func validateExtenders(path *field.Path, extenders []configv1.Extender) field.ErrorList {
	var errs field.ErrorList
	binders := 0
	managed := map[string]bool{}
	for i, e := range extenders {
		if e.PrioritizeVerb != "" && e.Weight <= 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("weight"), e.Weight, "must have a positive weight applied to it"))
		}
		if e.BindVerb != "" {
			binders++
		}
		for j, r := range e.ManagedResources {
			at := path.Index(i).Child("managedResources").Index(j).Child("name")
			errs = append(errs, validateExtendedResource(at, r.Name)...)
			if managed[r.Name] {
				errs = append(errs, field.Invalid(at, r.Name, "duplicate extender managed resource name"))
			}
			managed[r.Name] = true
		}
	}
	if binders > 1 {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("found %d extenders implementing bind", binders), "only one extender can implement bind"))
	}
	return errs
}

// validateExtendedResource: an extended resource has a domain of its own, is no quota name
// ("requests."), and is still a qualified name where quota puts that prefix before it.
func validateExtendedResource(path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, reason := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, reason))
	}
	if len(errs) > 0 {
		return errs
	}
	native := !strings.Contains(name, "/") || strings.Contains(name, v1.ResourceDefaultNamespacePrefix)
	quota := strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix)
	if native || quota || len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+name)) > 0 {
		return field.ErrorList{field.Invalid(path, name, "is an invalid extended resource name")}
	}
	return nil
}
