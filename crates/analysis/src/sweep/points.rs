//! Points by their number, and the chunks that they are cut into.

use quell_recording::results::Cell;

use super::axis::{Axis, SweepSpec, Value};
use super::read::{self, SweepError};
use super::{MOST_CHUNKS, MOST_POINTS};

/// Maximum number of combinations of the deciding axes.
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
    /// Number of points of a unit: the number of values of the verb's curve, or 1.
    curve: u64,
    /// Number of units of a chunk.
    units: u64,
}

/// The product of the axes that have an effect with certain values of the deciding axes.
#[derive(Clone, Debug)]
struct Product {
    /// The number of its first point.
    first: u64,
    points: u64,
    /// Deciding axes, and the index of the value of each.
    fixed: Vec<(usize, usize)>,
    /// The other axes; the last one changes fastest.
    free: Vec<usize>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number in the plan, from 0.
    pub number: u64,
    /// The index of each axis's value; `None` for an axis without effect here.
    choice: Vec<Option<usize>>,
}

/// Points that are computed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// At least one; they differ only in the verb's curve.
    pub points: Vec<Point>,
}

impl Plan {
    /// Reads a plan. `points_a_file` returns the number of points of a file of the dataset if the text does not specify it; it may depend
    /// on the axes, so that a file of expensive points does not take too long.
    ///
    /// # Errors
    /// For text that is not TOML, unknown axes, invalid values, axes without any effect, or too many points: with the line.
    pub fn read(text: &str, form: &SweepSpec, points_a_file: fn(&[Axis]) -> u64) -> Result<Self, SweepError> {
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

    /// Adds the products for each combination of the deciding axes, from the `next` one on.
    fn multiply(
        &mut self,
        form: &SweepSpec,
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

    fn add(&mut self, form: &SweepSpec, fixed: &[(usize, usize)]) -> Result<(), SweepError> {
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

    fn applies(&self, form: &SweepSpec, fixed: &[(usize, usize)], index: usize) -> bool {
        let known = |name: &str| {
            let found = fixed.iter().find(|(axis, _)| self.axes[*axis].kind.name == name);
            found.map(|(axis, value)| self.axes[*axis].values[*value].word())
        };
        (form.applies)(self.axes[index].kind.name, &known)
    }

    /// Rejects axes in the file that have no effect on any point.
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

    /// Number of points.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Number of units.
    pub fn units(&self) -> u64 {
        self.points / self.curve
    }

    /// Number of chunks, which are the files of the dataset.
    pub fn chunks(&self) -> u64 {
        self.units().div_ceil(self.units)
    }

    /// Number of points of a chunk; the last may have fewer.
    pub fn points_a_chunk(&self) -> u64 {
        self.units * self.curve
    }

    /// The numbers of the units of a chunk.
    pub fn units_of(&self, chunk: u64) -> std::ops::Range<u64> {
        let first = chunk.saturating_mul(self.units).min(self.units());
        first..first.saturating_add(self.units).min(self.units())
    }

    /// The unit with a number below [`Self::units`].
    pub fn unit(&self, number: u64) -> Unit {
        let first = number * self.curve;
        Unit { points: (first..first + self.curve).map(|point| self.point(point)).collect() }
    }

    /// The point with a number below [`Self::points`].
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

    /// The cells of a point in the columns of the axes.
    pub fn cells<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = Cell> + 'a {
        let with = self.axes.iter().zip(&point.choice);
        with.map(|(axis, choice)| {
            choice.and_then(|value| axis.values.get(value)).map_or(Cell::Empty, |value| value.cell.clone())
        })
    }
}
