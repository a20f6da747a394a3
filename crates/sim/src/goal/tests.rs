//! Schedules in all their forms.
