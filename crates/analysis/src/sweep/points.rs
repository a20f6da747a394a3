//! Points by their number, and the chunks that they are cut into.

use quell_recording::results::Cell;

use super::axis::{Axis, Form, Value};
use super::read::{self, SweepError};
use super::{MOST_CHUNKS, MOST_POINTS};

/// The most choices of the axes that decide.
const MOST_PRODUCTS: usize = 10_000;

/// All points of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The plan's own name.
    pub name: Option<String>,
    /// The axes, in the verb's order.
    pub axes: Vec<Axis>,
    products: Vec<Product>,
    points: u64,
    /// Points of a unit: the values of the verb's curve, else 1.
    curve: u64,
    /// Units of a chunk.
    units: u64,
}

/// The product of the axes that have an effect beside some values of those that decide.
#[derive(Clone, Debug)]
struct Product {
    /// The number of its first point.
    first: u64,
    points: u64,
    /// Axes that decide, and which value they have.
    fixed: Vec<(usize, usize)>,
    /// The others, of which the last changes fastest.
    free: Vec<usize>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number in the plan, from 0.
    pub number: u64,
    /// Which value each axis has; `None` for one without effect here.
    choice: Vec<Option<usize>>,
}

/// Points that are computed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// At least one; they differ in the verb's curve alone.
    pub points: Vec<Point>,
}

impl Plan {
    /// Reads a plan. `points_a_file` is how many points a file of the dataset has where the text does not say; it may depend on
    /// the axes, so that files of dear points are done in time.
    ///
    /// # Errors
    /// For what is no TOML, has unknown axes, values that cannot be, axes that have an effect nowhere, or too many points: with the line.
    pub fn read(text: &str, form: &Form, points_a_file: fn(&[Axis]) -> u64) -> Result<Self, SweepError> {
        let written = read::read(text, form)?;
        let curve = form.curve.and_then(|name| written.axes.iter().find(|axis| axis.kind.name == name));
        let curve = curve.map_or(1, |axis| axis.values.len() as u64);
        let mut plan =
            Self { name: written.name, axes: written.axes, products: Vec::new(), points: 0, curve, units: 1 };
        plan.multiply(form, &mut Vec::new(), 0)?;
        plan.refuse_idle()?;
        let asked = written.chunk.unwrap_or_else(|| points_a_file(&plan.axes));
        plan.units = (asked / plan.curve).max(plan.units().div_ceil(MOST_CHUNKS)).max(1);
        Ok(plan)
    }

    /// Adds the products beside each choice of the axes that decide, from the `next` one on.
    fn multiply(
        &mut self,
        form: &Form,
        fixed: &mut Vec<(usize, usize)>,
        next: usize,
    ) -> Result<(), SweepError> {
        let Some(index) = (next..self.axes.len()).find(|index| self.axes[*index].kind.decides) else {
            return self.add(form, fixed);
        };
        if !self.applies(form, fixed, index) {
            return self.multiply(form, fixed, index + 1);
        }
        for value in 0..self.axes[index].values.len() {
            fixed.push((index, value));
            self.multiply(form, fixed, index + 1)?;
            fixed.pop();
        }
        Ok(())
    }

    fn add(&mut self, form: &Form, fixed: &[(usize, usize)]) -> Result<(), SweepError> {
        let free = (0..self.axes.len()).filter(|index| !self.axes[*index].kind.decides);
        let free: Vec<usize> = free.filter(|index| self.applies(form, fixed, *index)).collect();
        let sizes = free.iter().map(|index| self.axes[*index].values.len() as u64);
        let points = sizes.fold(1, u64::saturating_mul);
        let all = self.points.saturating_add(points);
        if all > MOST_POINTS {
            let reason = format!(
                "the axes multiply to more than {MOST_POINTS} points: take values away, or make several sweeps"
            );
            return Err(SweepError { line: None, reason });
        }
        if self.products.len() >= MOST_PRODUCTS {
            let reason = format!(
                "the axes that decide what has an effect multiply to more than {MOST_PRODUCTS} cases: make several sweeps"
            );
            return Err(SweepError { line: None, reason });
        }
        self.products.push(Product { first: self.points, points, fixed: fixed.to_vec(), free });
        self.points = all;
        Ok(())
    }

    fn applies(&self, form: &Form, fixed: &[(usize, usize)], index: usize) -> bool {
        let known = |name: &str| {
            let found = fixed.iter().find(|(axis, _)| self.axes[*axis].kind.name == name);
            found.map(|(axis, value)| self.axes[*axis].values[*value].word())
        };
        (form.applies)(self.axes[index].kind.name, &known)
    }

    /// Refuses axes that somebody wrote and that change nothing.
    fn refuse_idle(&self) -> Result<(), SweepError> {
        let used = |index: usize| {
            let fixed = |product: &Product| product.fixed.iter().any(|(axis, _)| *axis == index);
            self.products.iter().any(|product| fixed(product) || product.free.contains(&index))
        };
        let idle = self.axes.iter().enumerate().find(|(index, axis)| axis.line.is_some() && !used(*index));
        match idle {
            Some((_, axis)) => {
                let reason = format!("{}: it has no effect at any point: leave it out", axis.kind.name);
                Err(SweepError { line: axis.line, reason })
            }
            None => Ok(()),
        }
    }

    /// How many points there are.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// How many units there are.
    pub fn units(&self) -> u64 {
        self.points / self.curve
    }

    /// How many chunks there are: files of the dataset.
    pub fn chunks(&self) -> u64 {
        self.units().div_ceil(self.units)
    }

    /// How many points a chunk has; the last may have fewer.
    pub fn points_a_chunk(&self) -> u64 {
        self.units * self.curve
    }

    /// The numbers of a chunk's units.
    pub fn units_of(&self, chunk: u64) -> std::ops::Range<u64> {
        let first = chunk.saturating_mul(self.units).min(self.units());
        first..first.saturating_add(self.units).min(self.units())
    }

    /// The unit of a number below [`Self::units`].
    pub fn unit(&self, number: u64) -> Unit {
        let first = number * self.curve;
        Unit { points: (first..first + self.curve).map(|point| self.point(point)).collect() }
    }

    /// The point of a number below [`Self::points`].
    fn point(&self, number: u64) -> Point {
        let mut choice = vec![None; self.axes.len()];
        let after = self.products.partition_point(|product| product.first <= number);
        if let Some(product) = after.checked_sub(1).map(|index| &self.products[index]) {
            for &(axis, value) in &product.fixed {
                choice[axis] = Some(value);
            }
            let mut rest = (number - product.first) % product.points;
            for &axis in product.free.iter().rev() {
                let size = self.axes[axis].values.len() as u64;
                choice[axis] = Some((rest % size) as usize);
                rest /= size;
            }
        }
        Point { number, choice }
    }

    /// The axes that have an effect at a point, with their values.
    pub fn values<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = (&'a Axis, &'a Value)> {
        let with = self.axes.iter().zip(&point.choice);
        with.filter_map(|(axis, choice)| Some((axis, axis.values.get((*choice)?)?)))
    }

    /// The value of an axis at a point, if it has one there.
    pub fn value<'a>(&'a self, point: &'a Point, name: &str) -> Option<&'a Value> {
        self.values(point).find(|(axis, _)| axis.kind.name == name).map(|(_, value)| value)
    }

    /// What the columns of the axes show of a point.
    pub fn cells<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = Cell> + 'a {
        let with = self.axes.iter().zip(&point.choice);
        with.map(|(axis, choice)| {
            choice.and_then(|value| axis.values.get(value)).map_or(Cell::Empty, |value| value.cell.clone())
        })
    }
}
