package charm

import (
	"bytes"
	"encoding/json"
)

// UnmarshalJSON reads an option as it was stored. JSON has one kind of number:
// the default gets the option's own type back.
func (o *Option) UnmarshalJSON(data []byte) error {
	type stored Option // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode((*stored)(o)); err != nil || o.Default == nil {
		return err
	}
	value, err := o.coerce(o.Default)
	o.Default = value
	return err
}
