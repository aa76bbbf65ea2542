package fix

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var errAbsent = errors.New("is not there")

// patch applies the operations to an object of the API, a pointer that the caller owns.
// Members that a path passes and that are not there are added, as render writes them.
func patch(object any, ops []Op) error {
	for _, op := range inOrder(ops) {
		path := strings.Split(op.Path, "/")[1:]
		if err := patchAt(reflect.ValueOf(object).Elem(), path, &op); err != nil {
			return fmt.Errorf("%s: %w", op.Path, err)
		}
	}
	return nil
}

// inOrder returns the operations with those last that remove, from the back of lists: no
// operation changes the positions that a later one names.
func inOrder(ops []Op) []Op {
	var rest, removals []Op
	for _, op := range ops {
		if op.Op == "remove" {
			removals = append(removals, op)
		} else {
			rest = append(rest, op)
		}
	}
	slices.SortStableFunc(removals, func(a, b Op) int { return comparePaths(b.Path, a.Path) })
	return append(rest, removals...)
}

// patchAt applies the operation to the member of v at the path.
func patchAt(v reflect.Value, path []string, op *Op) error {
	name := unescape(path[0])
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return patchAt(v.Elem(), path, op)
	case reflect.Struct:
		field := fieldNamed(v, name)
		switch {
		case !field.IsValid():
			return fmt.Errorf("%s has no field %s", v.Type(), name)
		case len(path) > 1:
			return patchAt(field, path[1:], op)
		case op.Op != "add" && field.IsZero():
			return errAbsent
		case op.Op == "remove":
			field.SetZero()
			return nil
		}
		return setValue(field, op.Value)
	case reflect.Map:
		return patchMap(v, name, path[1:], op)
	case reflect.Slice:
		return patchList(v, name, path[1:], op)
	}
	return fmt.Errorf("%s has no member %s", v.Type(), name)
}

// fieldNamed returns the field of that name in JSON, of the struct or of one that is inline in it,
// or the zero Value.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
		if tag == "" && v.Field(i).Kind() == reflect.Struct {
			if field := fieldNamed(v.Field(i), name); field.IsValid() {
				return field
			}
		}
	}
	return reflect.Value{}
}

func patchMap(m reflect.Value, name string, below []string, op *Op) error {
	key := reflect.ValueOf(name).Convert(m.Type().Key())
	old := m.MapIndex(key)
	if op.Op != "add" && !old.IsValid() {
		return errAbsent
	}
	if op.Op == "remove" && len(below) == 0 {
		m.SetMapIndex(key, reflect.Value{})
		return nil
	}
	value := reflect.New(m.Type().Elem()).Elem()
	if old.IsValid() {
		value.Set(old)
	}
	var err error
	if len(below) > 0 {
		err = patchAt(value, below, op)
	} else {
		err = setValue(value, op.Value)
	}
	if err != nil {
		return err
	}
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	m.SetMapIndex(key, value)
	return nil
}

func patchList(list reflect.Value, name string, below []string, op *Op) error {
	if name == "-" {
		value := reflect.New(list.Type().Elem()).Elem()
		if err := setValue(value, op.Value); err != nil {
			return err
		}
		list.Set(reflect.Append(list, value))
		return nil
	}
	i, err := strconv.Atoi(name)
	switch {
	case err != nil || i < 0 || i >= list.Len():
		return errAbsent
	case len(below) > 0:
		return patchAt(list.Index(i), below, op)
	case op.Op == "remove":
		list.Set(reflect.AppendSlice(list.Slice(0, i), list.Slice(i+1, list.Len())))
		return nil
	}
	return setValue(list.Index(i), op.Value)
}

// setValue sets v to a value of JSON.
func setValue(v reflect.Value, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	v.SetZero()
	return json.Unmarshal(data, v.Addr().Interface())
}
