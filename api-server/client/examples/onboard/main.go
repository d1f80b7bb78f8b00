// Command onboard onboards a student, looks him up, and reads the lists of students and events.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/registrar-dev/registrar/api-server/client"
)

func main() {
	if err := onboard(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func onboard(ctx context.Context) error {
	c, err := client.New(os.Getenv("BASE_URL"), os.Getenv("API_KEY"))
	if err != nil {
		return err
	}
	answer, err := c.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{
		Email: "kofi@demo-school.org", FirstName: "Kofi", LastName: new("Mensah"), Courses: &client.TextList{"ielts"}})
	if err != nil {
		return err
	}
	made := answer.Student()
	fmt.Println(made.Status, made.Enrollments[0].Action)

	found, err := c.Lookup(ctx, "kofi@demo-school.org")
	if err != nil {
		return err
	}
	fmt.Println(found.Student.FirstName, len(found.Enrollments))

	for page, err := range c.StudentPages(ctx, client.StudentsParams{Limit: new(1)}) {
		if err != nil {
			return err
		}
		for _, student := range page.Students {
			fmt.Println(student.Email)
		}
	}
	for page, err := range c.EventPages(ctx, client.ListEventsParams{Types: new("enrollment.created")}) {
		if err != nil {
			return err
		}
		for _, event := range page.Events {
			what, err := event.ValueByDiscriminator()
			if created, ok := what.(client.EnrollmentCreatedEvent); err == nil && ok {
				fmt.Println(event.Type, created.Data.Enrollment.CourseName)
			}
		}
	}

	_, err = c.Lookup(ctx, "nobody@north-institute.org")
	if fault, ok := errors.AsType[*client.Fault](err); ok {
		fmt.Println(fault.Status, fault.Code)
		return nil
	}
	return err
}
