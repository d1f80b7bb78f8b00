package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/registrar-dev/registrar/api-server/client"
)

// The examples run in TestExamples, against a server of its own.

func Example() {
	ctx := context.Background()
	c, err := client.New(os.Getenv("BASE_URL"), os.Getenv("API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := c.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{
		Email: "asha@north-institute.org", FirstName: "Asha", Courses: &client.TextList{"ielts"}, SendWelcomeEmail: new(false)})
	if err != nil {
		log.Fatal(err)
	}
	asha := answer.Student()
	fmt.Println(asha.Status, asha.Enrollments[0].Action, asha.Enrollments[0].CourseType)

	// The same call once more changes nothing.
	answer, err = c.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{
		Email: "asha@north-institute.org", FirstName: "Asha", Courses: &client.TextList{"ielts"}, SendWelcomeEmail: new(false)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Student().Status, answer.Student().Enrollments[0].Action)
}

func ExampleClientWithResponses_StudentPages() {
	ctx := context.Background()
	c, err := client.New(os.Getenv("BASE_URL"), os.Getenv("API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	for page, err := range c.StudentPages(ctx, client.StudentsParams{Status: new(client.StudentsParamsStatusActive), Limit: new(1)}) {
		if err != nil {
			log.Fatal(err)
		}
		for _, student := range page.Students {
			fmt.Println(student.FirstName, student.Membership.Status, len(student.Enrollments))
		}
	}
}

func ExampleClientWithResponses_EventPages() {
	c, err := client.New(os.Getenv("BASE_URL"), os.Getenv("API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	for page, err := range c.EventPages(context.Background(), client.ListEventsParams{}) {
		if err != nil {
			log.Fatal(err)
		}
		for _, event := range page.Events {
			what, err := event.ValueByDiscriminator()
			if err != nil {
				continue // of a type that came after this client
			}
			switch what := what.(type) {
			case client.StudentJoinedEvent:
				fmt.Println(event.Type, what.Data.Email)
			case client.EnrollmentCreatedEvent:
				fmt.Println(event.Type, what.Data.Enrollment.CourseName)
			}
		}
	}
}

func ExampleFault() {
	c, err := client.New(os.Getenv("BASE_URL"), os.Getenv("API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Lookup(context.Background(), "nobody@north-institute.org")
	if fault, ok := errors.AsType[*client.Fault](err); ok {
		fmt.Println(fault.Status, fault.Code, fault.Retry())
	}
}
