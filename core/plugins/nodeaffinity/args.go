package nodeaffinity

import (
	"errors"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	config "k8s.io/kube-scheduler/config/v1"
)

// ValidateArgs returns the errors in the arguments, with fields named relative to path.
func ValidateArgs(path *field.Path, args *config.NodeAffinityArgs) field.ErrorList {
	if args == nil || args.AddedAffinity == nil {
		return nil
	}
	var errs field.ErrorList
	if required := args.AddedAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		at := path.Child("addedAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
		_, err := nodeaffinity.NewNodeSelector(required, field.WithPath(at))
		errs = append(errs, fieldErrors(at, err)...)
	}
	if preferred := args.AddedAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(preferred) > 0 {
		at := path.Child("addedAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
		_, err := nodeaffinity.NewPreferredSchedulingTerms(preferred, field.WithPath(at))
		errs = append(errs, fieldErrors(at, err)...)
	}
	return errs
}

// fieldErrors splits an error into the errors of fields that it is made of. A part that
// names no field becomes an error at the path.
func fieldErrors(path *field.Path, err error) field.ErrorList {
	if err == nil {
		return nil
	}
	var errs field.ErrorList
	for _, e := range utilerrors.Flatten(utilerrors.NewAggregate([]error{err})).Errors() {
		var fe *field.Error
		if errors.As(e, &fe) {
			errs = append(errs, fe)
		} else {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, e.Error()))
		}
	}
	return errs
}
